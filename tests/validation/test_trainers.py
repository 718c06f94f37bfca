"""Is a result given the defaults of its own trainer and year?"""

from __future__ import annotations

import pytest

from commsim.validation.trainers import TRAINERS, trainer_of


@pytest.mark.parametrize(
    ("name", "framework", "year", "expected"),
    [
        ("megatron", "Megatron-LM", 2020, "Megatron-LM of 2021"),
        ("megatron", "Megatron-LM", 2022, "Megatron-LM of 2022"),
        ("megatron", "", None, "Megatron-Core"),
        ("megatron", "NeMo/Megatron-Core", 2025, "NeMo recipes"),
        ("megatron", "Megatron-Bridge/Megatron-Core", 2026, "Megatron-Bridge recipes"),
        ("fsdp", "NeMo AutoModel (PyTorch FSDP2)", None, "NeMo AutoModel"),
        ("fsdp", "KempnerForge (PyTorch FSDP2)", 2025, "KempnerForge"),
        ("fsdp", "llm-foundry/Composer (PyTorch FSDP)", 2023, "PyTorch FSDP"),
        ("megatron", "Megatron-Bridge/Megatron-Core", 2025, "Megatron-Bridge recipes of 2025"),
        ("fsdp", "torchtitan", None, "torchtitan"),
        ("megatron", "NeMo/Megatron", 2023, "NeMo of 2023"),
    ],
)
def test_who_was_it(name: str, framework: str, year: int | None, expected: str) -> None:
    found = trainer_of(name, framework, year)
    assert found is not None
    assert found.name == expected


def test_an_unknown_trainer_has_no_defaults() -> None:
    assert trainer_of("abacus", "", None) is None


def test_the_oldest_comes_first() -> None:
    for known in TRAINERS.values():
        years = [one.since for one in known]
        assert years == sorted(set(years))
        assert years[0] == 0
