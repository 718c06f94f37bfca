"""Are the products that files name those of the catalogue?"""

from __future__ import annotations

import pytest

from commsim.hardware import shelf
from commsim.hardware.devices import GCN, GPUS, adapter_of, identity, of_accelerator
from commsim.hardware.naming import aliases

UNKNOWN = {"v100-sxm3-32gb"}
"""Products that the catalogue has no figures of: a file that names one asks for the accelerator."""


def test_every_product_is_in_the_catalogue() -> None:
    assert (set(GPUS.values()) | set(GCN)) - set(aliases("accelerators")) == UNKNOWN


@pytest.mark.parametrize("name", sorted(set(GPUS.values()) - UNKNOWN))
def test_vendor_and_identity_agree(name: str) -> None:
    vendor = {"10de": "NVIDIA", "1002": "AMD"}[of_accelerator(name)[:4]]
    assert shelf.accelerator(name).vendor == vendor


@pytest.mark.parametrize(
    ("vendor", "device", "pair"),
    [
        ("0x10de", "0x2330", "10de:2330"),
        ("0x10DE", "0x20B0", "10de:20b0"),
        ("0x10de", "0x0000", ""),
        ("0xffff", "0xffff", ""),
        ("", "0x2330", ""),
    ],
)
def test_placeholders_are_no_identity(vendor: str, device: str, pair: str) -> None:
    assert identity(vendor, device) == pair


@pytest.mark.parametrize(
    ("fabric", "gigabits", "pair"),
    [("infiniband", 400, "15b3:1021"), ("roce", 150, "15b3:101b"), ("efa", 100, "1d0f:efa1"), ("infiniband", 1600, "")],
)
def test_usual_adapters(fabric: str, gigabits: float, pair: str) -> None:
    assert adapter_of(fabric, gigabits * 1e9 / 8) == pair
