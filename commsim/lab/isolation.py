"""How does a lab stand apart from the machine, and how is it gone whatever happens?

Everything of a lab lives in one network, mount and process namespace of its own. The first process of a process
namespace takes all others with it, and it dies with whoever started it, even by SIGKILL; the last process takes the
network namespaces with it. So there is nothing to clean up, and two labs do not see each other.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import signal
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from commsim.errors import LackError

if TYPE_CHECKING:
    from collections.abc import Iterator

_NEW_MOUNTS, _NEW_PIDS, _NEW_NET = 0x00020000, 0x20000000, 0x40000000
_PRIVATE = 0x00004000 | (1 << 18)
"""Mounts below do not reach the machine (MS_REC and MS_PRIVATE)."""
_DIE_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of prctl."""
NEEDED = ("torch", "pyroute2")


def need_lab() -> None:
    """Raise LackError, one line, when this machine cannot hold a lab."""
    if not sys.platform.startswith("linux"):
        raise LackError("lab: network namespaces are Linux's; this is another system")
    if os.geteuid() != 0:
        raise LackError("lab: laying out a network needs root; try `sudo commsim lab ...`")
    for name in NEEDED:
        if importlib.util.find_spec(name) is None:
            raise LackError(f"lab: {name} is not installed; `pip install 'commsim[bench]'` brings it")


def die_with_parent(parent: int) -> None:
    """Have the kernel end this process when its parent, of that process id, ends; exit when it has ended already."""
    _call("prctl", _DIE_WITH_PARENT, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def stand_apart() -> None:
    """Move into new namespaces and return as their first process; its parent, which waits, leaves with its exit code.

    LackError when this machine does not let root do so (a container without CAP_SYS_ADMIN).
    """
    try:
        _call("unshare", _NEW_NET | _NEW_MOUNTS | _NEW_PIDS)
        _call("mount", b"none", b"/", None, _PRIVATE, None)
    except OSError as error:
        raise LackError(f"lab: this machine lets nobody make namespaces ({error.strerror})") from None
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    _call("prctl", _DIE_WITH_PARENT, int(signal.SIGKILL), 0, 0, 0)
    _call("mount", b"proc", b"/proc", b"proc", 0, None)


def go_first() -> None:
    """Run before all else on the machine, with all that this process starts, where that is allowed.

    What is measured is the network, not how busy the machine is with other things; ranks mostly wait for the network,
    and the kernel keeps 5 % of each processor for the others (sched_rt_runtime_us).
    """
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(os.sched_get_priority_min(os.SCHED_RR)))


def new_network() -> int:
    """Return the file descriptor of a new network namespace; this process is in it from now on."""
    _call("unshare", _NEW_NET)
    return os.open("/proc/self/ns/net", os.O_RDONLY)


def enter(network: int) -> None:
    """Move this thread into a network namespace."""
    _call("setns", network, _NEW_NET)


@contextmanager
def within(network: int | None = None) -> Iterator[None]:
    """Be in a network namespace for a while, and afterwards again where one was."""
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    try:
        if network is not None:
            enter(network)
        yield
    finally:
        enter(home)
        os.close(home)


def _call(name: str, *arguments: object) -> None:
    """Call a function of the C library; OSError when it fails."""
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
