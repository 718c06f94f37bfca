"""Does a screening of pairs find who is bad, and nobody else?"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pytest

from commsim.errors import InputError
from commsim.measurement.check.screening import Screen, Trial, screen
from commsim.measurement.readers.trials import expanded, read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NODES = [f"n{number:02}" for number in range(12)]


def runs(share: Callable[[str, str], float | None], seed: int = 0) -> Screen:
    """Every pair at 45 GB/s times a share, give or take 1 %; None is a run that failed."""
    rng = np.random.default_rng(seed)
    shares = [(pair, share(*pair)) for pair in combinations(NODES, 2)]
    return screen(Trial(pair, None if part is None else 45e9 * part * rng.normal(1, 0.01)) for pair, part in shares)


@pytest.mark.parametrize("seed", range(5))
def test_healthy_nodes(seed: int) -> None:
    """Ten H100 nodes, 45 pairs, within 0.6 % of each other: no outlier."""
    found = runs(lambda *_: 1.0, seed)
    assert (found.bad_nodes, found.bad_links, found.unsteady, found.leaves) == ((), (), (), ())


def test_a_bad_node() -> None:
    found = runs(lambda a, b: 0.3 if "n04" in (a, b) else 1.0)
    assert [one.nodes for one in found.bad_nodes] == [("n04",)]
    assert found.bad_nodes[0].share == pytest.approx(0.3, rel=0.05)
    assert (found.bad_links, found.unsteady) == ((), ())


def test_two_bad_nodes() -> None:
    found = runs(lambda a, b: 0.3 if "n04" in (a, b) else 0.6 if "n07" in (a, b) else 1.0)
    assert [one.nodes for one in found.bad_nodes] == [("n04",), ("n07",)]


def test_a_bad_link() -> None:
    found = runs(lambda a, b: 0.2 if (a, b) == ("n02", "n09") else 1.0)
    assert found.bad_nodes == ()
    assert [one.nodes for one in found.bad_links] == [("n02", "n09")]


def test_a_node_that_fails() -> None:
    found = runs(lambda a, b: None if "n01" in (a, b) and b > "n05" else 1.0)
    assert [one.nodes for one in found.bad_nodes] == [("n01",)]
    assert (found.bad_nodes[0].failed, found.bad_nodes[0].runs) == (6, 11)


def test_leaves() -> None:
    """Pairs under one leaf do not meet the oversubscribed spine."""
    found = runs(lambda a, b: 1.0 if NODES.index(a) // 4 == NODES.index(b) // 4 else 0.8)
    assert found.leaves == tuple(tuple(NODES[first : first + 4]) for first in (0, 4, 8))


def test_leaves_of_two_nodes() -> None:
    fast = {("a", "b"), ("c", "d")}
    trials = [Trial(pair, 48e9 if pair in fast else 40e9) for pair in combinations("abcd", 2)]
    assert screen(trials).leaves == (("a", "b"), ("c", "d"))


def test_pairs_that_share_no_node_blame_both() -> None:
    pairs = [Trial((NODES[2 * n], NODES[2 * n + 1]), 1e9 if n == 3 else 45e9) for n in range(6)]
    found = screen(pairs)
    assert found.bad_nodes == ()
    assert [one.nodes for one in found.bad_links] == [("n06", "n07")]


def test_now_and_then() -> None:
    once = [Trial(("a", "b"), 45e9, f"run {n}") for n in range(5)] + [Trial(("a", "b"), 9e9, "run 0")]
    others = [Trial(("c", "d"), 45e9, f"run {n}") for n in range(5) for _ in range(3)]
    found = screen(once + others)
    assert (found.bad_links, [one.nodes for one in found.unsteady]) == ((), [("a", "b")])


def test_nodes_alone() -> None:
    """Ten H100 nodes, each alone, within 0.3 % of each other: no outlier; then one that is slow."""
    rng = np.random.default_rng(0)
    healthy = [Trial((name,), 482e9 * rng.normal(1, 0.001)) for name in NODES]
    assert screen(healthy).bad_nodes == ()
    found = screen([*healthy[1:], Trial((NODES[0],), 370e9)])
    assert [one.nodes for one in found.bad_nodes] == [(NODES[0],)]
    assert (found.bad_links, found.leaves) == ((), ())


def test_nothing_ran() -> None:
    with pytest.raises(InputError, match="at least one run"):
        screen([Trial(("a", "b"), None)])


@pytest.mark.data
def test_public_screening(data: Path) -> None:
    """17 H100 nodes in pairs, 810 runs of which 34 failed (h100_17node_pairwise_summary.csv of the public formats)."""
    found = screen(read(data / "formats" / "nccl_tests" / "h100_17node_pairwise_summary.csv"))
    assert sum(pair.busbw is None for pair in found.trials) == 34
    assert [one.nodes for one in found.bad_nodes] == [("nodeA-003",)]
    failing = [one.nodes for one in found.bad_links if one.failed == one.runs]
    assert failing == [("nodeA-005", "nodeA-016"), ("nodeA-007", "nodeA-016")]


def written(folder: Path, text: str) -> Path:
    path = folder / "pairs.csv"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("node_a,node_b,busbw\na,b,45\n", Trial(("a", "b"), 45e9)),
        ("a,b,busbw_bytes_per_s,test\nx,y,4.5e10,sendrecv\n", Trial(("x", "y"), 45e9, "sendrecv")),
        ("nodes,busbw_GB_per_s\nn[01-02],45\n", Trial(("n01", "n02"), 45e9)),
        ('nodes,busbw\n"n[01,07]",\n', Trial(("n01", "n07"), None)),
        ("test,N,G,nodes,busbw\nsendrecv_perf,2,8,a b,1\n", Trial(("a", "b"), 1e9, "sendrecv_perf N=2 G=8")),
    ],
)
def test_columns(tmp_path: Path, text: str, expected: Trial) -> None:
    assert read(written(tmp_path, text)) == [expected]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("node_a,node_b,speed\na,b,45\n", "a column busbw_bytes_per_s"),
        ("node_a,node_b,busbw\na,b,fast\n", "row 1: busbw: 'fast'"),
        ("node_a,node_b,busbw\na,a,45\n", "the names of one or two nodes"),
        ("node_a,node_b,busbw\na,b,-1\n", "a finite bandwidth"),
        ("node_a,node_b,busbw\na,b,nan\n", "a finite bandwidth"),
        ("nodes,busbw\nn[01-03],45\n", "the names of one or two nodes"),
        ("busbw\n45\n", "the names of one or two nodes"),
        ("", "a column"),
    ],
)
def test_what_is_no_screening(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read(written(tmp_path, text))


def test_fast_pairs_that_form_no_groups() -> None:
    """Two chains of fast pairs: most pairs of a chain are slow, so no leaf is told."""
    found = runs(lambda a, b: 1.3 if NODES.index(b) - NODES.index(a) == 1 and b != "n06" else 1.0)
    assert found.leaves == ()


def test_lists_of_hosts() -> None:
    assert expanded("nodeA-[001,004]") == ["nodeA-001", "nodeA-004"]
    assert expanded("a, b") == ["a", "b"]
    assert len(expanded("n[1-999999999]")) == 3


@pytest.mark.parametrize("nodes", ["n[-5]", "n[5-]", "n[,]", "n[1", "n[1-2-3]", f"n[{'9' * 5000}]"])
def test_lists_that_are_none(tmp_path: Path, nodes: str) -> None:
    with pytest.raises(InputError, match="the names of one or two nodes belong here"):
        read(written(tmp_path, f'nodes,busbw\n"{nodes}",45\n'))


@pytest.mark.data
def test_ten_healthy_nodes(data: Path) -> None:
    """nccl-tests#212 and its cluster's summary: five collectives on ten H100 nodes alone; no outlier."""
    found = screen(read(data / "formats" / "nccl_tests" / "h100_10node_single_node_summary.csv"))
    assert len({name for trial in found.trials for name in trial.nodes}) == 10
    assert (found.bad_nodes, found.bad_links, found.unsteady) == ((), (), ())
