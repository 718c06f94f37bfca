"""Is a rank's place found, whoever started it?"""

from __future__ import annotations

import pytest

from bench.ranks import Place, first_host, place
from commsim.errors import InputError

TORCHRUN = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "MASTER_ADDR": "n1", "MASTER_PORT": "29400"}
SLURM = {"SLURM_PROCID": "5", "SLURM_NTASKS": "8", "SLURM_LOCALID": "1", "SLURM_JOB_NODELIST": "n[003-004]"}
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "2",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}
MPICH = {"PMI_RANK": "1", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1", "MASTER_ADDR": "n1"}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        (TORCHRUN, Place(5, 8, 1, "n1", 29400)),
        (SLURM | {"SLURM_JOB_ID": "40123"}, Place(5, 8, 1, "n003", 20123)),
        (OPEN_MPI, Place(1, 2, 1, "localhost", 20000)),
        (MPICH, Place(1, 8, 1, "n1", 20000)),
        (SLURM | TORCHRUN, Place(5, 8, 1, "n1", 29400)),
    ],
)
def test_place(environment: dict[str, str], expected: Place) -> None:
    assert place(environment) == expected


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, "no rank is given"),
        ({"RANK": "0"}, "no rank is given"),
        ({"RANK": "8", "WORLD_SIZE": "8"}, "below WORLD_SIZE"),
        ({"RANK": "-1", "WORLD_SIZE": "8"}, "whole number"),
        ({"RANK": "0", "WORLD_SIZE": "8"}, "MASTER_ADDR"),
        (TORCHRUN | {"MASTER_PORT": "99999"}, "port from 1 to 65535"),
    ],
)
def test_half_a_place_is_refused(environment: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        place(environment)


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("n1", "n1"),
        ("n1,n2", "n1"),
        ("n[003-006,9],m1", "n003"),
        ("n[7]", "n7"),
        ("rack-2-n[01,03]-ib", "rack-2-n01-ib"),
    ],
)
def test_first_host_of_slurm(nodes: str, first: str) -> None:
    assert first_host(nodes) == first
