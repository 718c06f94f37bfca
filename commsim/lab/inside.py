"""What happens inside a lab? Its first process lays out the network, starts the ranks and changes links as it is told.

It reads lines of JSON: the blueprint with the ranks, then orders; it writes lines of JSON: what happened. It ends when
its input does, and everything in the lab ends with it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from typing import IO, Any, cast

from commsim.errors import CommsimError
from commsim.lab.blueprint import Blueprint, Cable
from commsim.lab.isolation import die_with_parent, go_first, stand_apart
from commsim.lab.wiring import Wired


def main() -> None:
    """Be a lab until the input ends."""
    die_with_parent(int(sys.argv[1]))
    try:
        go_first()
        stand_apart()
        begun = json.loads(sys.stdin.readline())
        network = Wired(drawn(begun["blueprint"]))
    except (CommsimError, OSError) as error:
        say(failed=str(error))
        os._exit(1)
    say(laid=len(network.networks))
    ranks = _Ranks(network, begun["ranks"])
    for line in sys.stdin:
        order = json.loads(line)
        if "cable" in order:
            network.shape(order["cable"], order["rate"])
        else:
            ranks.signal(order["rank"], order["signal"])
    os._exit(0)


def drawn(told: dict[str, Any]) -> Blueprint:
    """Return the blueprint that JSON holds."""
    cables = tuple(Cable(tuple(one["ends"]), one["rate"], one["kind"]) for one in told["cables"])
    routes = tuple(tuple(route) for route in told["routes"])
    return Blueprint(tuple(told["spaces"]), cables, tuple(told["ranks"]), routes)


def say(**what: object) -> None:
    """Tell whoever is outside."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


class _Ranks:
    """The processes of the ranks, started together, told on as they come and go."""

    def __init__(self, network: Wired, told: dict[str, Any]) -> None:
        networks = [network.networks[space] for space in network.plan.ranks]
        self._processes: dict[int, int] = {}
        self._starter = subprocess.Popen(
            told["command"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=told["folder"],
            env=told["environment"],
            pass_fds=networks,
            text=True,
        )
        ranks = [{**one, "network": own} for one, own in zip(told["each"], networks)]
        with cast("IO[str]", self._starter.stdin) as told_to:
            told_to.write(json.dumps(ranks))
        threading.Thread(target=self._follow, daemon=True).start()

    def signal(self, rank: int, number: int) -> None:
        """Send a rank a signal."""
        os.kill(self._processes[rank], number)

    def _follow(self) -> None:
        for line in cast("IO[str]", self._starter.stdout):
            told = json.loads(line)
            if "process" in told:
                self._processes[told["rank"]] = told["process"]
            say(**told)
        say(ended=self._starter.wait())


if __name__ == "__main__":
    main()
