"""Which product is this PCI device?"""

from __future__ import annotations

NVIDIA, AMD = "10de", "1002"

GPUS = {
    "10de:1db1": "v100-sxm2-16gb",
    "10de:1db5": "v100-sxm2-32gb",
    "10de:1db8": "v100-sxm3-32gb",
    "10de:1eb8": "t4",
    "10de:20b0": "a100-sxm-40gb",
    "10de:20b1": "a100-pcie-40gb",
    "10de:20b2": "a100-sxm-80gb",
    "10de:20b5": "a100-pcie-80gb",
    "10de:20bd": "a800-sxm-40gb",
    "10de:20f1": "a100-pcie-40gb",
    "10de:20f3": "a800-sxm-80gb",
    "10de:2204": "rtx-3090",
    "10de:2230": "rtx-a6000",
    "10de:2237": "a10g",
    "10de:2321": "h100-nvl",
    "10de:2324": "h800-sxm",
    "10de:2329": "h20",
    "10de:232c": "h20-141gb",
    "10de:2330": "h100-sxm",
    "10de:2331": "h100-pcie",
    "10de:2335": "h200-sxm",
    "10de:2339": "h100-sxm-94gb",
    "10de:2342": "gh200",
    "10de:2348": "gh200-144gb",
    "10de:2684": "rtx-4090",
    "10de:26b9": "l40s",
    "10de:26ba": "l20",
    "10de:27b8": "l4",
    "10de:2901": "b200-sxm",
    "10de:2941": "gb200",
    "10de:2b85": "rtx-5090",
    "10de:2bb5": "rtx-pro-6000",
    "10de:2e12": "gb10",
    "10de:3182": "b300-sxm",
    "10de:31c2": "gb300",
    "1002:7408": "mi250x",
    "1002:740c": "mi250x",
    "1002:74a1": "mi300x",
    "1002:74a5": "mi325x",
    "1002:75a3": "mi355x",
}
"""The accelerator of a vendor:device pair, as the catalogue names it; identities: PCI ID Repository, pci-ids.ucw.cz."""

PORTS = {
    "15b3:1013": 100,
    "15b3:1017": 100,
    "15b3:101b": 200,
    "15b3:1021": 400,
    "15b3:1023": 800,
    "1d0f:efa0": 100,
    "1d0f:efa1": 100,
    "1d0f:efa2": 200,
    "17db:0501": 200,
}
"""Gb/s of the fastest port of an adapter (ConnectX-4 to -8, EFA, Cassini), which a file may leave out."""


def identity(vendor: str, device: str) -> str:
    """Return `10de:2330` for vendor 0x10de and device 0x2330, "" when the file holds a placeholder."""
    parts = [part.lower().removeprefix("0x").zfill(4) for part in (vendor, device)]
    known = all(part not in ("0000", "ffff") for part in parts) and vendor and device
    return ":".join(parts) if known else ""


def of_accelerator(name: str) -> str:
    """Return the PCI identity under which an accelerator is known, "" when it is none."""
    return next((pair for pair, accelerator in GPUS.items() if accelerator == name), "")


GCN = {"mi250x": "gfx90a", "mi300x": "gfx942", "mi325x": "gfx942", "mi355x": "gfx950"}
"""The architecture of AMD's accelerators, which tells what their links carry."""

_ADAPTERS = {"efa": "1d0f:efa1", "slingshot": "17db:0501"}


def adapter_of(fabric: str, speed: float) -> str:
    """Return the PCI identity of a usual adapter of a fabric and speed (B/s), "" when none is known."""
    fitting = [pair for pair, gigabits in PORTS.items() if pair.startswith("15b3") and gigabits * 1e9 / 8 >= speed]
    return _ADAPTERS.get(fabric, fitting[0] if fitting else "")
