"""Are causes read as they are written, and refused in one clear line?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from commsim.errors import InputError
from commsim.stragglers.causes import cause, cause_of, causes, law, table_of, written
from commsim.stragglers.kinds import DataLoading, OsNoise, Pause, SlowLink, SlowRank
from commsim.stragglers.laws import Lognormal, Rare
from tests.stragglers.drawn import EXAMPLES as LAWS
from tests.stragglers.test_kinds import EXAMPLES

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_table_is_read_back(name: str) -> None:
    table = yaml.safe_load(yaml.safe_dump(table_of(EXAMPLES[name])))
    assert cause_of(table) == EXAMPLES[name]


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "effects"])
def test_a_line_is_read_back(name: str) -> None:
    assert cause(written(EXAMPLES[name])) == EXAMPLES[name]


@pytest.mark.parametrize("name", [name for name in LAWS if name not in {"maximum", "all but two"}])
def test_every_law_is_read_back_in_a_cause(name: str) -> None:
    late = DataLoading(LAWS[name], chance=0.5)
    assert cause_of(table_of(late)) == late
    assert cause(written(late)) == late


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("slow-rank: factor=1.1 count=1", SlowRank(factor=1.1, count=1)),
        ("slow-rank", SlowRank()),
        ("slow-rank: ranks=3,17", SlowRank(ranks=(3, 17))),
        ("slow-rank: ranks=3", SlowRank(ranks=(3,))),
        ("slow-link: delay=10ms links=[0, 4]", SlowLink(delay=0.01, links=(0, 4))),
        ("pause: every=70 planned=yes", Pause(every=70.0, planned=True)),
        ("pause: seconds=1.5s", Pause(seconds=1.5)),
        (
            "os-noise: rate=3350 lasting=lognormal(0.5, mean=8us) seen=0.1",
            OsNoise(3350.0, Lognormal(0.5, 8e-6), 0.1),
        ),
        (
            "data-loading: lasting=rare(0.1, lognormal(0.5, mean=200ms), otherwise=0)",
            DataLoading(Rare(0.1, Lognormal(0.5, 0.2), 0.0)),
        ),
    ],
)
def test_what_people_write(text: str, expected: object) -> None:
    assert cause(text) == expected


def test_a_file_of_causes(tmp_path: Path) -> None:
    file = tmp_path / "causes.yaml"
    file.write_text("causes:\n- {kind: slow-rank, factor: 1.3}\n- 'pause: every=50'\n", encoding="utf-8")
    assert causes(file) == (SlowRank(factor=1.3), Pause(every=50.0))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("slow-rnk: factor=1", "cause: 'slow-rnk'; no such kind; did you mean 'slow-rank'?"),
        ("slow-rank factor=2", "a name with its fields"),
        ("slow-rank: factor", "key=value, each once, belongs at 'factor'"),
        ("slow-rank: factor=1.1 factor=1.2", "key=value, each once, belongs at 'factor=1.2'"),
        ("slow-rank: factr=1", "did you mean 'factor'?"),
        ("slow-rank: factor=-1", "slow-rank: factor: -1.0"),
        ("slow-rank: factor=nan", "slow-rank: factor: nan"),
        ("slow-rank: chance=1.5", "slow rank: chance: 1.5; a number from 0 to 1"),
        ("slow-rank: ranks=3,x", "slow-rank: ranks[1]: 'x'"),
        ("slow-link: delay=10", "write a number with its unit"),
        ("pause: planned=maybe", "true or false belongs here"),
        ("data-loading: lasting=pareto(0.5)", "pareto: alpha: 0.5; above 1 belongs here, for there is no mean below"),
        ("data-loading: lasting=lognorml(1)", "no such law; did you mean 'lognormal'?"),
        ("data-loading: lasting=lognormal(1, 2, 3)", "key=value, each once, belongs at '3'"),
        ("data-loading: lasting=(", "a law, such as lognormal(sigma=0.5)"),
        ("", "a name with its fields"),
    ],
)
def test_refuses(text: str, says: str) -> None:
    with pytest.raises(InputError) as refused:
        cause(text)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("slow-rank: {}", "a list under the one key 'causes'"),
        ("causes: [{factor: 2}]", "causes[0]: {'factor': 2}; a table with the key 'kind'"),
        ("causes: [{kind: jitter, sigma: {lognormal: 1}}]", "jitter: sigma"),
        ("causes: [{kind: data-loading, lasting: {uniform: {low: 2, high: 1}}}]", "the lower bound belongs first"),
    ],
)
def test_refuses_files(tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "causes.yaml"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as refused:
        causes(file)
    assert says in str(refused.value)


def test_a_law_needs_a_name() -> None:
    with pytest.raises(InputError, match="law: 3"):
        law(3)
