"""Do the notebooks run from a clean state? Executes every notebook of notebooks/ and stops at the first error."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
LONGEST_CELL_S = 120


def execute(path: Path) -> None:
    """Run a notebook's cells in order in a new kernel of this Python. CellExecutionError when one fails."""
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    place = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=LONGEST_CELL_S, kernel_name="python3", resources=place).execute()


def main() -> None:
    """Execute all notebooks; SystemExit with the cell and its error at the first that fails, or when there is none."""
    paths = sorted(NOTEBOOKS.rglob("*.ipynb"))
    for path in paths:
        began = time.monotonic()
        try:
            execute(path)
        except CellExecutionError as error:
            sys.exit(f"{path.name} failed\n{error}")
        print(f"{path.name}: ran in {time.monotonic() - began:.1f} s")
    sys.exit(None if paths else f"no notebook in {NOTEBOOKS}")


if __name__ == "__main__":
    main()
