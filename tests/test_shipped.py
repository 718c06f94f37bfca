"""Are topologies/ and bench/ found wherever commsim was installed from?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commsim import shipped
from commsim.errors import CommsimError

if TYPE_CHECKING:
    from pathlib import Path


def test_checkout_has_the_folders_at_its_root() -> None:
    assert shipped.folder("bench") == shipped.ROOT / "bench"
    assert shipped.folder("topologies") == shipped.ROOT / "topologies"
    assert (shipped.ROOT / "commsim" / "shipped.py").is_file()


def test_wheel_has_them_under_share(tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "commsim"
    (package / "_share" / "topologies").mkdir(parents=True)
    assert shipped.root_of(package) == package / "_share"
    assert shipped.folder("topologies", shipped.root_of(package)) == package / "_share" / "topologies"


def test_package_without_share_looks_beside_itself(tmp_path: Path) -> None:
    assert shipped.root_of(tmp_path / "commsim") == tmp_path


def test_missing_folder_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(CommsimError, match="topologies/ is missing from") as refused:
        shipped.folder("topologies", tmp_path)
    assert "\n" not in str(refused.value)
    assert str(tmp_path) in str(refused.value)
