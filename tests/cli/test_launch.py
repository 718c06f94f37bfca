"""Does a printed script run, under programs that stand for the scheduler's?"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

import commsim as cs
from commsim.shipped import ROOT
from tests.bench.started import LOOPBACK, free_port

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Answer

BASH = "/bin/bash"
SRUN = """#!/bin/sh
shift
for rank in 0 1; do SLURM_PROCID=$rank SLURM_LOCALID=$rank SLURM_NTASKS=2 "$@" & done
wait
"""
MPIRUN = """#!/bin/sh
while [ "$1" != python ]; do shift; done
for rank in 0 1; do OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_LOCAL_RANK=$rank OMPI_COMM_WORLD_SIZE=2 "$@" & done
wait
"""
SCONTROL = "#!/bin/sh\necho 127.0.0.1\n"


def script(commsim: Callable[..., Answer], scheduler: str, out: Path, *more: str) -> str:
    asked = ("barrier,broadcast", "--sizes", "1K", "--iterations", 2, "--backend", "gloo", "--out", out)
    answer = commsim("launch", "print", scheduler, *asked, "--nodes", 1, "--ranks-per-node", 2, *more)
    assert (answer.code, answer.err) == (0, "")
    return answer.out


@pytest.mark.parametrize("scheduler", ["slurm", "mpi"])
def test_the_script_measures(scheduler: str, commsim: Callable[..., Answer], tmp_path: Path) -> None:
    programs = {
        "srun": SRUN,
        "mpirun": MPIRUN,
        "scontrol": SCONTROL,
        "python": f'#!/bin/sh\nexec {sys.executable} "$@"\n',
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "hosts").write_text("\n127.0.0.1 slots=2\n", encoding="utf-8")
    printed = script(commsim, scheduler, tmp_path / "run.jsonl").replace("29500", str(free_port()))
    found = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "GLOO_SOCKET_IFNAME": LOOPBACK}
    cluster = {"SLURM_JOB_NODELIST": "n[1-2]", "HOSTFILE": str(tmp_path / "hosts")}
    ended = subprocess.run(
        [BASH],
        input=printed,
        env=os.environ | found | cluster,
        text=True,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    barrier, broadcast = cs.measurements(tmp_path / "run.jsonl")
    assert (len(barrier.rows), broadcast.ranks) == (1, 2)


def test_kubernetes(commsim: Callable[..., Answer]) -> None:
    service, job = yaml.safe_load_all(script(commsim, "k8s", Path("/data/run.jsonl"), "--image", "me/torch"))
    assert (service["kind"], job["kind"], job["spec"]["completions"]) == ("Service", "Job", 1)
    pod = job["spec"]["template"]["spec"]
    assert pod["subdomain"] == service["metadata"]["name"]
    (container,) = pod["containers"]
    assert container["image"] == "me/torch"
    assert "resources" not in container
    checked = subprocess.run([BASH, "-n"], input=container["command"][-1], text=True, check=False, capture_output=True)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "torchrun --nnodes 1 --nproc-per-node 2 --node-rank $JOB_COMPLETION_INDEX" in container["command"][-1]


def test_gpus_are_asked_for(commsim: Callable[..., Answer]) -> None:
    asked = ("all_reduce", "--sizes", "8", "--nodes", 4, "--ranks-per-node", 8, "--out", "/data/run.jsonl")
    assert "#SBATCH --gpus-per-node=8\n" in commsim("launch", "print", "slurm", *asked).out
    job = list(yaml.safe_load_all(commsim("launch", "print", "k8s", *asked).out))[1]
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 8}


def test_a_job_of_no_ranks(commsim: Callable[..., Answer]) -> None:
    answer = commsim("launch", "print", "slurm", "barrier", "--nodes", 0, "--ranks-per-node", 8, "--out", "x.jsonl")
    assert answer.code == 2
    assert answer.err == "commsim: nodes: 0; at least one belongs here\n"
