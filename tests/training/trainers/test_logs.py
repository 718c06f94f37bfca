"""Is the time of a step read from what trainers print?"""

from __future__ import annotations

import pytest

from commsim.errors import InputError
from commsim.training.trainers.logs import measured_step

TOKENS = 8192.0
LINES = {
    "12.3 s": 12.3,
    "850ms": 0.85,
    " iteration 10/ 100 | consumed samples: 1280 | elapsed time per iteration (ms): 1234.5 | throughput per GPU "
    "(TFLOP/s/GPU): 420.5 |": 1.2345,
    "step: 10  loss: 5.1  memory: 48.5GiB(51%)  tps: 2,931  tflops: 169.77  mfu: 54.42%": TOKENS / 2931,
    "\x1b[36mstep: 10\x1b[0m  \x1b[35mtps: 1,024\x1b[0m": 8.0,
    "Training epoch 0: train_step_timing in s: 3.25": 3.25,
}


@pytest.mark.parametrize(("text", "seconds"), LINES.items())
def test_lines(text: str, seconds: float) -> None:
    assert measured_step(text, TOKENS) == pytest.approx(seconds)


BROKEN = ("elapsed time per iteration (ms): .", "train_step_timing in s: ..3", "tps: ,", "iter time (s): -")


@pytest.mark.parametrize("text", ["12.3", "fast", "0 s", "tps: 0", "-3 s", "nan s", "", *BROKEN])
def test_what_says_no_time(text: str) -> None:
    with pytest.raises(InputError):
        measured_step(text, TOKENS)


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        (" 10%|#         | 12/120 [02:28<22:12, 12.34s/it]", 12.34),
        ("{'loss': 1.2} 45%|####5     | 9/20 [00:04<00:05, 2.00it/s]", 0.5),
    ],
)
def test_bars_of_progress(line: str, seconds: float) -> None:
    assert measured_step(line, 8192.0) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["hello", "", "throughput per GPU (TFLOP/s/GPU): 380"])
def test_what_says_no_time_is_told_what_would(text: str) -> None:
    with pytest.raises(InputError, match=r"a time such as '12\.3 s' belongs here, or a line"):
        measured_step(text, 8192.0)
