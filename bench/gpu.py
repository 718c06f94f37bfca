"""What does a single GPU deliver? Memory, matmul, attention, launch and NCCL alone, in one run of a few minutes.

`python -m bench.gpu --out H100.jsonl` writes a `run` record, which says on what, with which versions and when, and one
`kernel` record for each piece of work, with every sample. `--device cpu` takes tiny pieces, to show that it works.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from commsim.errors import CommsimError
from commsim.measurement.launch.crew import need_torch

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and return the exit code: 0, 2 bad input, 3 no torch or no such device, 4 the disk is full."""
    parser = argparse.ArgumentParser(prog="python -m bench.gpu", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="JSON lines, a new file")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--seconds", type=float, default=0.5, help="how long each piece is repeated")
    given = parser.parse_args(arguments)
    try:
        need_torch()
        from bench.alone import measure

        measure(given.device, given.out, given.seconds)
    except CommsimError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
