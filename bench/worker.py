"""How long do collectives take? One rank of a measurement; whoever starts it tells it its place in the environment.

`python -m bench.worker --cases CASES.json --out RUN.jsonl` under `commsim bench`, torchrun, srun or mpirun.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from bench.ranks import Place, place
from commsim.errors import CommsimError, PartialError
from commsim.measurement.launch.cases import read_cases
from commsim.measurement.launch.crew import need_torch
from commsim.measurement.launch.whereabouts import Trace

if TYPE_CHECKING:
    from collections.abc import Sequence

_PLACE_IN_SOURCE = re.compile(r"\[[^\]]*\.(?:cc|cpp|h):\d+\] ?|\[[\d.:a-f]+\]:\d+")
"""What torch says of its own source and of addresses."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one rank and return its exit code: 0, or 2 bad input, 3 something is missing here, 4 partial."""
    given = _arguments(arguments)
    states = os.environ.get("COMMSIM_STATES")
    if states and os.environ.get("COMMSIM_WATCHED"):
        threading.Thread(target=_end_with_watcher, daemon=True).start()
    trace, rank = Trace(), os.environ.get("RANK", "?")
    try:
        at = place(os.environ)
        rank = str(at.rank)
        trace = Trace(Path(states) / str(at.rank)) if states else trace
        _run(given, at, trace)
    except CommsimError as error:
        return _complain(f"rank {rank}: {error}", error.exit_code)
    except KeyboardInterrupt:
        return _complain(_where(rank, trace, "interrupted"), PartialError.exit_code)
    except RuntimeError as error:  # what torch raises when a rank is gone or late
        return _complain(_where(rank, trace, str(error).splitlines()[0]), PartialError.exit_code)
    return 0


def _run(given: argparse.Namespace, at: Place, trace: Trace) -> None:
    cases = read_cases(given.cases)
    need_torch()
    from bench.run import run

    run(cases, at, trace, given.out, backend=given.backend, timeout=given.timeout)


def _where(rank: str, trace: Trace, why: str) -> str:
    now = trace.now
    case = f"case {now.case + 1}" if now.case >= 0 else "before the first case"
    turn = f", iteration {now.iteration + 1}" if now.iteration >= 0 else ""
    return f"rank {rank}: {case}{turn}, {now.state}: {_PLACE_IN_SOURCE.sub('', why)}"


def _complain(text: str, code: int) -> int:
    sys.stderr.write(f"{' '.join(text.split())}\n")
    return code


def _end_with_watcher() -> None:
    """Leave at once when whoever started this process is gone: its end of the pipe is closed then."""
    sys.stdin.buffer.read()
    shutil.rmtree(os.environ["COMMSIM_STATES"], ignore_errors=True)  # which it would have removed
    os._exit(PartialError.exit_code)


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.worker", description=__doc__)
    parser.add_argument("--cases", type=Path, required=True, help="JSON list of cases")
    parser.add_argument("--out", type=Path, required=True, help="JSON lines; finished cases in it are skipped")
    parser.add_argument("--backend", default="gloo", help="gloo or nccl")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds that a rank waits for the others")
    return parser.parse_args(given)


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    os._exit(code)  # a group that lost a rank would wait for it at exit
