"""Do the examples still print what is committed beside them?

Runs every script in scripts/examples/ (`*.sh`, `*.py`) and compares what it prints with its `*.out`, character by
character. `--update` writes the outputs anew.
"""

from __future__ import annotations

import argparse
import difflib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "scripts" / "examples"
INTERPRETERS = {".py": [sys.executable], ".sh": ["bash", "-euo", "pipefail"]}
LONGEST_RUN_S = 120


def environment() -> dict[str, str]:
    """Return an environment in which output is the same everywhere, and `commsim` is the one of this Python."""
    fixed = {"COLUMNS": "120", "LC_ALL": "C.UTF-8", "MPLBACKEND": "agg", "NO_COLOR": "1", "TERM": "dumb"}
    return os.environ | fixed | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def printed(example: Path) -> str:
    """Return what an example prints; SystemExit with its complaint when it fails."""
    run = subprocess.run(
        [*INTERPRETERS[example.suffix], str(example)],
        capture_output=True,
        check=False,
        cwd=ROOT,
        encoding="utf-8",
        env=environment(),
        stdin=subprocess.DEVNULL,
        timeout=LONGEST_RUN_S,
    )
    if run.returncode:
        sys.exit(f"{example.relative_to(ROOT)} exited with {run.returncode}\n{run.stdout}{run.stderr}")
    return run.stdout


def difference(example: Path, expected: Path) -> str:
    """Return the unified diff between the committed output and the present one; empty when they agree."""
    old = expected.read_text(encoding="utf-8") if expected.exists() else ""
    names = (f"{expected.relative_to(ROOT)} (committed)", f"{example.relative_to(ROOT)} (now)")
    new = printed(example)
    return (
        "\n".join(difflib.unified_diff(old.splitlines(), new.splitlines(), *names, lineterm="")) if old != new else ""
    )


def settle(example: Path, *, update: bool) -> bool:
    """Tell whether the example prints what is committed, printing the diff; with `update`, make it so."""
    expected = example.with_suffix(".out")
    if update:
        expected.write_text(printed(example), encoding="utf-8")
        return True
    diff = difference(example, expected)
    print(f"{example.relative_to(ROOT)}: {'differs' if diff else 'ok'}", diff, sep="\n" if diff else "")
    return not diff


def main() -> int:
    """Check or rewrite the outputs; the exit code is 1 when one differs, or when there is none."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--update", action="store_true", help="write the outputs instead of comparing them")
    update = arguments.parse_args().update
    examples = sorted(path for path in EXAMPLES.glob("*") if path.suffix in INTERPRETERS)
    agreed = [settle(example, update=update) for example in examples]
    print(f"{sum(agreed)} of {len(agreed)} examples print what is committed")
    return 0 if agreed and all(agreed) else 1


if __name__ == "__main__":
    sys.exit(main())
