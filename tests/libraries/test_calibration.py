"""Is a calibration read, its links found, and a machine's ranges and what-ifs applied the right way round?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from commsim.errors import InputError
from commsim.figures import Figure
from commsim.hardware.catalogue import load
from commsim.hardware.shelf import names
from commsim.hardware.topology import Link
from commsim.libraries.calibration import Calibration, Case, LinkUse, calibration, rates

if TYPE_CHECKING:
    from pathlib import Path


def test_every_link_of_the_catalogue_has_a_use() -> None:
    """So no system asks for a kind of link of which nothing is said; shares are shares."""
    fitted = calibration("nccl")
    kinds = {link.kind for name in names() if not load(name).template for link in load(name).topology.kinds}
    uses = {kind: fitted.use(kind) for kind in kinds}
    assert len(uses) > 10
    assert all(0 < use.efficiency <= 1 for use in uses.values())
    assert all(0 < use.reducing(ranks) <= 1 for use in uses.values() for ranks in (1, 2, 8, 72))


def test_figures_have_sources() -> None:
    fitted = calibration("nccl")
    shares = [use.efficiency for use in fitted.links.values()]
    costs = [one.base for one in fitted.protocols.values()]
    costs += [cost for use in fitted.links.values() for cost in use.hop.values()]
    assert all(isinstance(value, Figure) and value.source for value in [*shares, *costs])


def test_the_first_pattern_that_fits_counts() -> None:
    fitted = Calibration("any", {"nvlink4": LinkUse(0.9), "nvlink*": LinkUse(0.8), "* nic": LinkUse(0.7)})
    assert [fitted.use(kind).efficiency for kind in ("nvlink4", "nvlink5", "roce nic")] == [0.9, 0.8, 0.7]
    with pytest.raises(InputError, match="calibration any: links: 'pcie5-x16'; no pattern fits this kind of link"):
        fitted.use("pcie5-x16")


def test_switches_limit_the_bus_bandwidth() -> None:
    """Bus bandwidth = share x 2 (n - 1)/(n + 1) of the links: with 4 ranks 1.2, with many 2."""
    use = LinkUse(0.8, in_network=0.7, in_network_bus=0.9)
    assert use.reducing(2) == 0.7, "busbw 0.47 of the links is below the switches' limit"
    for ranks in (8, 72):
        assert use.reducing(ranks) * 2 * (ranks - 1) / (ranks + 1) == pytest.approx(0.9)
    assert LinkUse(0.8).reducing(8) == 0.8


def test_shares_of_what_is_done_on_a_link() -> None:
    use = LinkUse(0.8, network=0.6, staged=0.4)
    assert [use.share(way) for way in ("efficiency", "network", "staged")] == [0.8, 0.6, 0.4]
    assert LinkUse(0.8).share("network") == LinkUse(0.8).share("staged") == 0.8
    with pytest.raises(InputError, match=r"network: 1\.5; a share above 0"):
        LinkUse(0.8, network=1.5)
    with pytest.raises(InputError, match=r"meshed: 2\.0; a share above 0"):
        Calibration("any", {}, meshed=2.0)


def test_messages_cost_by_protocol() -> None:
    """LL128 waits as LL does; through the host's memory another cost may be said."""
    use = LinkUse(0.8, hop={"LL": 1e-6, "Simple": 3e-6}, staged_hop={"Simple": 7e-6})
    assert [use.message(name) for name in ("LL", "LL128", "Simple")] == [1e-6, 1e-6, 3e-6]
    assert use.message("LL", staged=True) == use.message("Simple", staged=True) == 7e-6
    assert LinkUse(0.8).message("Simple") == 0.0


def test_ranges_have_a_slow_and_a_fast_end() -> None:
    link = Link("new", Figure(100e9, low=80e9, high=120e9), Figure(1e-6, low=0.5e-6, high=2e-6))
    found = {corner: [float(each[0]) for each in rates((link,), Case(corner))] for corner in ("low", "nominal", "high")}
    assert found == {"low": [80e9, 2e-6], "nominal": [100e9, 1e-6], "high": [120e9, 0.5e-6]}


def test_what_ifs_multiply() -> None:
    case = Case(faster=(("nvlink*", 2.0), ("*4", 3.0)))
    assert [case.factor(kind) for kind in ("nvlink4", "nvlink5", "ib nic")] == [6.0, 2.0, 1.0]
    bandwidth, latency = rates((Link("nvlink5", 50e9, 1e-6),), case)
    assert (bandwidth.tolist(), latency.tolist()) == ([100e9], [1e-6])


def test_a_file_is_a_calibration(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text('name: mine\nlinks: {"*": {efficiency: 0.5}}\n')
    assert calibration(str(file)).use("anything").efficiency == 0.5


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('name: mine\nlinks: {"*": {efficiency: 1.5}}\n', "efficiency: 1.5; a share above 0 and up to 1 belongs here"),
        ('name: mine\nlinks: {"*": {efficiency: 0}}\n', "efficiency: 0.0; a share above 0 and up to 1 belongs here"),
        ('name: mine\nlinks: {"*": {efficiency: .nan}}\n', "mine.yaml: links"),
        ('name: mine\nlinks: {"*": {eficiency: 0.5}}\n', "did you mean 'efficiency'?"),
        ("name: mine\nlinks: {}\nprotocols: {Simple: {base: 8}}\n", "base"),
    ],
)
def test_mistakes_in_a_file(tmp_path: Path, text: str, line: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as error:
        calibration(str(file))
    assert line in str(error.value)


def test_no_such_calibration() -> None:
    with pytest.raises(InputError, match=r"calibration: 'ncl'; no such calibration; did you mean 'nccl'"):
        calibration("ncl")
    with pytest.raises(InputError, match=r"calibration: '/nowhere.yaml'; no such calibration"):
        calibration("/nowhere.yaml")


def test_rates_of_a_machine() -> None:
    topology = load("hgx-h100").topology
    bandwidth, latency = rates(topology.kinds)
    assert np.array_equal(bandwidth, [float(link.bandwidth) for link in topology.kinds])
    assert np.array_equal(latency, topology.latency)
