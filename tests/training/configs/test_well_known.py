"""Does the table of models say what the models' own files say?"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from commsim.errors import InputError
from commsim.reading import load_yaml, read
from commsim.shipped import folder
from commsim.training.configs.well_known import Entry, aliases, model, models
from commsim.training.parameters import parameters

if TYPE_CHECKING:
    from pathlib import Path

    from commsim.training.model import Model

FILES = {
    "MiniMaxAI--MiniMax-M2.5": "minimax-m2.5",
    "Qwen--Qwen3-235B-A22B": "qwen3-235b-a22b",
    "Qwen--Qwen3-30B-A3B": "qwen3-30b-a3b",
    "Qwen--Qwen3-32B": "qwen3-32b",
    "Qwen--Qwen3-8B": "qwen3-8b",
    "Qwen--Qwen3.5-397B-A17B": "qwen3.5-397b-a17b",
    "deepseek-ai--DeepSeek-V3": "deepseek-v3",
    "deepseek-ai--DeepSeek-V3.2": "deepseek-v3.2",
    "deepseek-ai--DeepSeek-V4-Pro": "deepseek-v4-pro",
    "meta-llama--Llama-4-Maverick-17B-128E-Instruct": "llama4-maverick",
    "meta-llama--Meta-Llama-3.1-405B": "llama3.1-405b",
    "meta-llama--Meta-Llama-3.1-70B": "llama3.1-70b",
    "meta-llama--Meta-Llama-3.1-8B": "llama3.1-8b",
    "mistralai--Mixtral-8x22B-v0.1": "mixtral-8x22b",
    "mistralai--Mixtral-8x7B-v0.1": "mixtral-8x7b",
    "moonshotai--Kimi-K2-Instruct": "kimi-k2",
    "moonshotai--Kimi-K3": "kimi-k3",
    "nvidia--Nemotron-H-56B-Base-8K": "nemotron-h-56b",
    "openai--gpt-oss-120b": "gpt-oss-120b",
    "openai--gpt-oss-20b": "gpt-oss-20b",
    "zai-org--GLM-5-FP8": "glm-5",
}
"""Which file of the public collection describes which model of the table."""


def unnamed(known: Model) -> Model:
    return dataclasses.replace(known, name="", source="", assumptions=())


@pytest.mark.data
def test_every_file_of_the_collection_is_in_the_table(data: Path) -> None:
    assert {file.stem for file in (data / "formats" / "models").glob("*.json")} == set(FILES)


@pytest.mark.data
@pytest.mark.parametrize(("file", "name"), FILES.items())
def test_the_table_says_what_the_file_says(data: Path, file: str, name: str) -> None:
    assert unnamed(model(data / "formats" / "models" / f"{file}.json")) == unnamed(model(name))


def test_entries_read_one_by_one_are_the_file_read_whole() -> None:
    whole = load_yaml(folder("topologies") / "models.yaml")
    assert [read(Entry, entry, name).model(name) for name, entry in whole.items()] == models()
    assert {name: tuple(entry.get("aliases", ())) for name, entry in whole.items()} == {
        known.name: aliases(known.name) for known in models()
    }


@pytest.mark.parametrize("known", models(), ids=lambda known: known.name)
def test_names_and_sources(known: Model) -> None:
    assert known.source
    assert model(known.name) is model(known.name.upper())
    for alias in aliases(known.name):
        assert model(alias) is known, alias
        assert alias == alias.lower()


def test_no_alias_means_two_models() -> None:
    said = [name for known in models() for name in (known.name, *aliases(known.name))]
    assert len(said) == len(set(said))


def test_sizes_in_comments() -> None:
    """The comment behind a name tells its parameters; it must not rot."""
    lines = (folder("topologies") / "models.yaml").read_text(encoding="utf-8").splitlines()
    said = dict(line.split(": # ") for line in lines if ": # " in line)
    assert set(said) == {known.name for known in models()}
    for name, comment in said.items():
        counted = parameters(model(name))
        active = f", {counted.active / 1e9:.1f} B active" if counted.active != counted.total else ""
        assert comment == f"{counted.total / 1e9:.1f} B parameters{active}", name


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("llama3.1-405", "did you mean 'llama3.1-405b'"),
        ("deepsek-v3", "did you mean 'deepseek-v3'"),
        ("a model of mine", "no such model"),
        ("missing/config.json", "a readable configuration file"),
        ("missing.yaml", "a readable YAML file"),
    ],
)
def test_unknown_names(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        model(name)


MINE = """
source: a test
hidden: 512
vocabulary: 1000
blocks:
  full-dense:
    attention: {heads: 8, kv_heads: 2, head_dim: 64}
    feed_forward: {width: 1024}
layers: [{kinds: [full-dense], repeat: %s}]
"""


def test_a_persons_own_yaml(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(MINE % 4)
    made = model(file)
    assert made.name == "mine"
    assert made.layers == ("full-dense",) * 4
    assert model(str(file)) == made


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("repeat: 4", "repeat: 1000000000000"), "at most 4096 layers"),
        (("repeat: 4", "repeat: 0"), "at least one layer"),
        (("heads: 8", "heads: -8"), "not negative"),
        (("heads: 8", "heads: 7"), "mine.yaml: Attention: kv_heads: 2; a divisor of the 7 heads"),
        (("hidden: 512", "hidden: .nan"), "whole number"),
        (("width: 1024", "with: 1024"), "did you mean 'width'"),
        (("kinds: [full-dense]", "kinds: [full-dens]"), "did you mean 'full-dense'"),
    ],
)
def test_a_persons_own_mistakes(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text((MINE % 4).replace(*change))
    with pytest.raises(InputError, match=message):
        model(file)
