"""How is a measurement started on a cluster? As a script for the scheduler that runs there."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from commsim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from commsim.measurement.launch.cases import Case
    from commsim.units import Seconds

_FROM = 'cd "$(python -c "from commsim.shipped import ROOT; print(ROOT)")"'
"""The folder that holds bench/, wherever commsim is installed on the node."""
_PORT = 29_500


@dataclass(frozen=True)
class Job:
    """A measurement on several nodes: the cases, how many ranks on each, and the file for all."""

    cases: tuple[Case, ...]
    nodes: int
    per_node: int
    backend: str
    out: Path
    timeout: Seconds = 300.0
    image: str = "IMAGE"

    def __post_init__(self) -> None:
        """Refuse a job without ranks; InputError."""
        for name, count in (("nodes", self.nodes), ("ranks-per-node", self.per_node)):
            if count < 1:
                raise InputError(name, count, "at least one belongs here")

    @property
    def worker(self) -> str:
        """What each rank is started with, in a shell that has OUT."""
        how = f"--backend {self.backend} --timeout {self.timeout:g}"
        return f'python -m bench.worker --cases "$OUT.cases" --out "$OUT" {how}'

    @property
    def prepared(self) -> list[str]:
        """Lines that write the cases beside the results and go to where the worker is."""
        written = json.dumps([case.document for case in self.cases], indent=1)
        out = shlex.quote(str(self.out))
        return [f"OUT=$(realpath -m {out})", "cat >\"$OUT.cases\" <<'CASES'", written, "CASES", _FROM]


def slurm(job: Job) -> str:
    """Return a batch script for sbatch; ranks find themselves in Slurm's own environment."""
    gpus = [f"#SBATCH --gpus-per-node={job.per_node}"] if job.backend == "nccl" else []
    head = [
        "#!/bin/bash",
        "#SBATCH --job-name=commsim",
        f"#SBATCH --nodes={job.nodes}",
        f"#SBATCH --ntasks-per-node={job.per_node}",
        *gpus,
        "#SBATCH --exclusive",
        "set -euo pipefail",
    ]
    first = 'export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)'
    started = f"export OUT MASTER_PORT={_PORT}\nsrun --kill-on-bad-exit=1 {job.worker}"
    return _lines([*head, *job.prepared, first, started])


def mpi(job: Job) -> str:
    """Return a script around mpirun; the hosts come from its own host file or from the scheduler."""
    ranks = f"-np {job.nodes * job.per_node} --map-by ppr:{job.per_node}:node"
    head = [
        "#!/bin/bash",
        "# HOSTFILE lists the nodes, that of rank 0 first; OUT lies where every node sees it.",
        "set -euo pipefail",
    ]
    first = "export MASTER_ADDR=$(awk 'NF { print $1; exit }' \"${HOSTFILE:?the file that lists the nodes}\")"
    where = f"export OUT MASTER_PORT={_PORT}"
    passed = "-x MASTER_ADDR -x MASTER_PORT -x OUT -x PATH"
    return _lines([*head, *job.prepared, first, where, f'mpirun --hostfile "$HOSTFILE" {ranks} {passed} {job.worker}'])


def k8s(job: Job) -> str:
    """Return an indexed Job, and the Service by which its pods find rank 0; torchrun starts the ranks of each."""
    script = "\n".join([*job.prepared, _torchrun(job)])
    indented = "\n".join(f"                {line}" for line in script.splitlines())
    limits = f"\n          resources: {{limits: {{nvidia.com/gpu: {job.per_node}}}}}" if job.backend == "nccl" else ""
    return f"""\
apiVersion: v1
kind: Service
metadata: {{name: commsim}}
spec: {{clusterIP: None, selector: {{job-name: commsim}}}}
---
apiVersion: batch/v1
kind: Job
metadata: {{name: commsim}}
spec:
  completionMode: Indexed
  completions: {job.nodes}
  parallelism: {job.nodes}
  backoffLimit: 0
  template:
    spec:
      subdomain: commsim
      restartPolicy: Never
      containers:
        - name: ranks
          image: {job.image}{limits}
          command:
            - /bin/bash
            - -euo
            - pipefail
            - -c
            - |
{indented}
"""


def _torchrun(job: Job) -> str:
    where = f"--master-addr commsim-0.commsim --master-port {_PORT}"
    node = f"--nnodes {job.nodes} --nproc-per-node {job.per_node} --node-rank $JOB_COMPLETION_INDEX"
    return f"torchrun {node} {where} {job.worker.removeprefix('python ')}"


def _lines(parts: list[str]) -> str:
    return "".join(f"{part}\n" for part in parts)


SCRIPTS: dict[str, Callable[[Job], str]] = {"slurm": slurm, "mpi": mpi, "k8s": k8s}
"""Every scheduler for which a script can be printed."""
