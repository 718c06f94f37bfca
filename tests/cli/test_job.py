"""Do commands say what a trainer's file asks for in vain, and when it is written for another model?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Answer

LLAMA_70B = '[model]\nname = "llama3"\nflavor = "70B"\n[parallelism]\ntensor_parallel_degree = 8\n'
NOT_70B = "a hidden size of 8,192, not 4,096; 80 layers, not 32; 64 attention heads, not 32"


JOB = "llama3.1-8b hgx-h100 --nodes 2 --global-batch 16 --plan"


@pytest.mark.parametrize("command", ["estimate", "stragglers", "compare"])
def test_the_file_of_another_model(commsim: Callable[..., Answer], tmp_path: Path, command: str) -> None:
    file = tmp_path / "titan.toml"
    file.write_text(LLAMA_70B)
    job = f"{JOB} {file}"
    lines = {
        "estimate": job.split(),
        "stragglers": [*job.split(), "--cause", "jitter: sigma=0.01", "--steps", "10"],
        "compare": [job, "recompute=full"],
    }
    answer = commsim(command, *lines[command])
    note = f"note: the file of torchtitan is written for another model than llama3.1-8b: {NOT_70B}"
    assert (answer.code, set(answer.err.splitlines())) == (0, {note})


def test_what_a_file_asks_for_in_vain_is_said(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    file = tmp_path / "ds.json"
    file.write_text('{"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}, "train_batch_size": 16}')
    answer = commsim("estimate", *JOB.split(), file)
    assert (answer.code, answer.err) == (0, "note: offload_param is left out: nothing is moved to the cpu\n")
