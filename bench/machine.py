"""On what was it measured? The machine, the versions and the settings, without any name of a host or a person."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from commsim import __version__
from commsim.measurement.readers.json_lines import SCHEMA
from commsim.measurement.settings import knobs

if TYPE_CHECKING:
    from bench.team import Team

_WORD = re.compile(r"[A-Za-z0-9_.,:=-]{1,40}")
_PLAIN = (
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "OMP_NUM_THREADS",
    "TORCH_NCCL_HIGH_PRIORITY",
)
_QUERY = "clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.limit"


def run_record(team: Team) -> dict[str, Any]:
    """Return the record of the run; every rank calls this and gets the same."""
    team.say(f"host {team.rank}", {"at": _host(), "accelerator": _accelerator(team.device)})
    said = [team.said(f"host {rank}") for rank in range(team.size)]
    numbers = {at: number for number, at in enumerate(dict.fromkeys(one["at"] for one in said))}
    hosts = [
        {
            "ranks": [rank for rank, one in enumerate(said) if one["at"] == at],
            "accelerator": next(one["accelerator"] for one in said if one["at"] == at),
        }
        for at in numbers
    ]
    return {
        "record": "run",
        "schema": SCHEMA,
        "library": team.backend,
        "machine": {"nodes": len(hosts), "hosts": hosts, **processor()},
        "versions": versions(),
        "settings": settings(team.backend),
        "clocks": clocks(),
    }


def versions() -> dict[str, str]:
    """Return the version of everything that takes part; gloo is built into torch and has none of its own."""
    found = {
        "commsim": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "gloo": torch.__version__,
        "kernel": platform.release().partition("-")[0],
    }
    if torch.cuda.is_available():
        found["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))  # type: ignore[no-untyped-call]
        found["cuda"] = str(torch.version.cuda)
        found["driver"] = _smi("driver_version")
    return found


def processor() -> dict[str, Any]:
    """Return what the CPU calls itself, how many cores there are, and how much memory."""
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8", errors="replace") if info.exists() else ""
    name = re.search(r"^model name\s*:\s*(.+)$", text, flags=re.MULTILINE)
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {"cpu": name[1] if name else platform.machine(), "cores": os.cpu_count(), "memory_bytes": pages}


def settings(backend: str) -> dict[str, str]:
    """Return what the environment changes: NCCL's own settings, threads, and over which interface gloo speaks."""
    found = knobs([f"{name}={value}" for name, value in sorted(os.environ.items())])
    plain = {name: os.environ[name] for name in _PLAIN if _WORD.fullmatch(os.environ.get(name, ""))}
    interface = os.environ.get("GLOO_SOCKET_IFNAME", "default")
    if backend == "gloo":
        plain["interface"] = (
            "loopback" if interface.startswith("lo") else interface if interface == "default" else "named"
        )
    return found | plain


def clocks() -> dict[str, str]:
    """Return the clocks and the power limit of the first GPU as its driver says them; nothing without one."""
    values = _smi(_QUERY).split(", ") if torch.cuda.is_available() else []
    return dict(zip(_QUERY.split(","), values))


def _smi(query: str) -> str:
    program = shutil.which("nvidia-smi")
    if program is None:
        return ""
    asked = [program, "--id=0", f"--query-gpu={query}", "--format=csv,noheader"]
    found = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=20)
    return found.stdout.strip() if found.returncode == 0 else ""


def _accelerator(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else ""


def _host() -> str:
    """What tells this host from others, and does not tell its name; COMMSIM_NODE overrides it."""
    name = os.environ.get("COMMSIM_NODE") or socket.gethostname()
    return hashlib.sha256(name.encode()).hexdigest()[:12]
