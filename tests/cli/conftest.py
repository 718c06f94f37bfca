"""How do tests run the command line? In this process, and with what it printed in hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from commsim.cli import run

if TYPE_CHECKING:
    from collections.abc import Callable


class Answer(NamedTuple):
    """What a command did: its exit code, and what it wrote to stdout and stderr."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:  # noqa: ANN401 - JSON is anything
        """The JSON document on stdout, which must be all that stands there; NaN and infinity are no JSON."""
        return json.loads(self.out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


@pytest.fixture
def commsim(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answer]:
    """Return a function that runs `commsim ARGUMENTS` at 80 columns, without colour."""
    for name, value in {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)

    def command(*arguments: object) -> Answer:
        code = run([str(one) for one in arguments])
        return Answer(code, *capsys.readouterr())

    return command
