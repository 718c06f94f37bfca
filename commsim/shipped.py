"""Where are the folders that are shipped beside the code: topologies/ and bench/?

In a wheel they lie in `commsim/_share/`; in a checkout, an sdist and an editable install at its root.
"""

from __future__ import annotations

from pathlib import Path

from commsim.errors import CommsimError


def root_of(package: Path) -> Path:
    """Return the folder that holds `topologies/` and `bench/` for the `commsim` package which lies at `package`."""
    share = package / "_share"
    return share if share.is_dir() else package.parent


ROOT = root_of(Path(__file__).resolve().parent)
"""Where `python -m bench.worker` is started; file names handed to it must be absolute."""


def folder(name: str, root: Path = ROOT) -> Path:
    """Return the shipped folder `name`. CommsimError when this installation lacks it."""
    path = root / name
    if not path.is_dir():
        raise CommsimError(f"{name}/ is missing from {root}: this installation is incomplete, install commsim again")
    return path
