"""How do many ranks start on one machine at the price of one?

`python -m bench.forked` reads one JSON list from standard input: for each rank its environment, the arguments of
`bench.worker`, the file descriptor of the network namespace it belongs in (null: this one) and the file for what it
says. It imports torch once, forks every rank, prints a line of JSON for each that starts and for each that ends, and
ends when all have.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
from typing import Any

WORKER = "bench.worker"


def main() -> None:
    """Start the ranks, and say when each ends and how."""
    ranks = json.load(sys.stdin)
    import torch.distributed  # noqa: F401 - once, for all of them

    running = {}
    for number, rank in enumerate(ranks):
        child = os.fork()
        if not child:
            _become(rank)
        running[child] = number
        _say(rank=number, process=child)
    while running:
        child, status = os.wait()
        if child in running:
            _say(rank=running.pop(child), code=os.waitstatus_to_exitcode(status))


def _become(rank: dict[str, Any]) -> None:
    """Be a rank, and leave with its exit code."""
    code = 1
    try:
        from commsim.lab.isolation import enter

        if rank["network"] is not None:
            enter(rank["network"])
        log = os.open(rank["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.environ.update(rank["environment"])
        sys.argv = [WORKER, *rank["arguments"]]
        runpy.run_module(WORKER, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(bool(left.code))
    except BaseException:  # noqa: BLE001 - whatever it is, it belongs in the rank's own log
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _say(**what: object) -> None:
    print(json.dumps(what), flush=True)  # noqa: T201 - standard output is how it reports


if __name__ == "__main__":
    main()
