"""Is every mistake one clear line on stderr, with exit code 2 and without a traceback?"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

from tests.hardware.boxes import box, cpu, gpu, pci

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Answer

COST, SHOW = "cost hgx-h100 all_reduce", "show hgx-h100"
STEP = "estimate llama3.1-405b hgx-h100 --gpus 64 --global-batch 64"
PLAN = f"{STEP} --plan tensor=8,data=8"

MISTAKES = {
    # plans
    "estimate llama3.1-405b hgx-h100 --gpus 64 --global-batch 2048 --plan tensor=8,data=128": "1024 ranks",
    "estimate llama3.1-405b hgx-h100 --gpus 256 --global-batch 8 --plan tensor=256": "128 attention heads",
    "estimate llama3.1-405b hgx-h100 --gpus 24 --global-batch 8 --plan tensor=3,data=8": "attention heads",
    "estimate mixtral-8x7b hgx-h100 --gpus 24 --global-batch 24 --plan expert=3,data=24": "8 experts",
    "estimate llama3.1-405b hgx-h100 --gpus 2048 --global-batch 64 --plan pipeline=256,data=8": "without a layer",
    "estimate llama3.1-405b hgx-h100 --gpus 64 --global-batch 60 --plan tensor=8,data=8": "multiple of",
    f"{STEP} --plan tensr=8,data=8": "did you mean 'tensor'?",
    f"{STEP} --plan tensor=8,data=": "as in data=8",
    f"{STEP} --plan tensor=8,tensor=8": "once",
    f"{STEP} --plan ''": "",
    f"{STEP} --plan tensor=99999999999999999999,data=8": "plan: tensor",
    f"{STEP} --plan plan.yaml": "a readable configuration belongs here",
    f"{STEP} --plan {{folder}}": "a readable configuration belongs here",
    f"{STEP} --plan {'t' * 300}": "no such axis",
    f"{STEP}": "Missing option '--plan'",
    f"{STEP} --plan tensor=8,pipeline=8 --zero 3": "data=N",
    f"{STEP} --plan tensor=8,data=8 --context-by ring": "context=N",
    f"{STEP} --plan data=64 --no-sequence-parallel": "tensor=N",
    f"{PLAN} --virtual-stages 4": "pipeline",
    f"{PLAN} --zero 4": "0, 1, 2 or 3",
    f"{PLAN} --shard 3": "divisor",
    f"{PLAN} --explain context": "says nothing in this plan",
    # recipes
    "estimate llama3.1-405b hgx-h100 --gpus 64 --plan tensor=8,data=8": "global-batch: nothing; the sequences of",
    f"{PLAN} --global-batch 0": "global-batch: 0",
    f"{PLAN} --micro-batch -1": "micro-batch: -1",
    f"{PLAN} --sequence 8k": "--sequence: '8k'; a whole number belongs here",
    f"{PLAN} --global-batch 1e3": "--global-batch: '1e3'; a whole number",  # the last of several is the one
    f"{PLAN} --efficiency best": "--efficiency: 'best'; a number belongs here",
    f"{PLAN} --imbalance nan": "imbalance: nan",
    f"{PLAN} --gradient-bytes nan": "gradient-bytes: nan",
    f"{PLAN} --weight-bytes -1": "weight-bytes: -1",
    f"{PLAN} --precision fp9": "did you mean 'fp8'?",
    f"{PLAN} --precision nvfp4": "multiplies matrices in",
    f"{PLAN} --recompute ful": "did you mean 'full'?",
    f"{PLAN} --recompute-layers 0": "1",
    f"{STEP} --plan tensor=8,pipeline=8 --schedule gpip": "did you mean 'gpipe'?",
    f"{PLAN} --schedule gpipe": "the plan names no pipeline axis",
    f"{PLAN} --no-overlap-pipeline": "the plan names no pipeline axis",
    f"{STEP} --plan data=64 --overlap-tensor": "the plan names no tensor axis",
    f"{PLAN} --imbalance 3": "has no experts; leave it out",
    f"{PLAN} --overlap-expert": "has no experts; leave it out",
    f"{PLAN} --recompute moe": "has no such module",
    f"{PLAN} --context-by ring": "context=N belongs in it",
    f"{STEP} --plan tensor=8.0": "plan: tensor: 'tensor=8.0'; a whole number",
    f"{PLAN} --schedule forward": "backward",
    f"{PLAN} --measured 2.5": "write a number with its unit, such as '12.3 s'",
    f"{PLAN} --attention flash9": "did you mean 'flash",
    f"{PLAN} --global-batch 1000000000000": "a whole number from 1 to 1e+09",
    # models
    "estimate llama3.1-40b hgx-h100 --plan data=8": "did you mean 'llama3.1-405b'?",
    "estimate llama3.1-40b hgx-h100 --plan data=8 --global-batch 8": "did you mean 'llama3.1-405b'?",
    "estimate '' hgx-h100 --plan data=8 --global-batch 8": "model: ''; no such model",
    "estimate {folder} hgx-h100 --plan data=8 --global-batch 8": "config.json",
    "estimate {text} hgx-h100 --plan data=8 --global-batch 8": "JSON belongs here",
    "estimate {absent}/config.json hgx-h100 --plan data=8 --global-batch 8": "config.json",
    "estimate {large}.json hgx-h100 --plan data=8 --global-batch 8": "at most",
    f"estimate {'t' * 300} hgx-h100 --plan data=8 --global-batch 8": "no such model",
    f"replay {'t' * 300}": "a file, a folder, or the beginning of names of files",
    # machines
    "show hgx-h10": "did you mean 'hgx-h100'?",
    "show ''": "system",
    "show nvl144": "several machines bear this name",
    "show {absent}.yaml": "'No such file or directory'; a readable YAML file belongs here",
    "show {text}.yaml": "",
    "show {large}.yaml": "at most",
    "show {folder}": "this is a folder",
    "show {absent}.xml": "no such file",
    "show {apart}.xml": "a host apart",
    "show {loop}.xml": "PCIe is a tree",
    "show {text}.xml": "",
    "show {large}.xml": "bytes",
    "show {text}.txt": "",
    "show {unnamed}.xml": "name it",
    "show {unnamed}.xml --accelerator h1000-sxm": "did you mean",
    f"{SHOW} --nodes 0": "nodes: 0",
    f"{SHOW} --nodes -1": "nodes: -1",
    f"{SHOW} --nodes 1e12": "--nodes: '1e12'",
    f"{SHOW} --nodes 1000000000000": "can be joined",
    f"{SHOW} --gpus 100000000000000000000000": "can be joined",
    f"{COST} --size 1G --nodes 100000": "at most 262,144",
    f"{SHOW} --gpus 12": "multiple of 8",
    f"{SHOW} --nodes 2 --gpus 16": "not both",
    f"{SHOW} --gpus-per-node 9": "1 to 8",
    f"{SHOW} --gpus-per-domain 0": "gpus",
    f"{SHOW} --nics-per-node 0": "nics",
    f"{SHOW} --nodes 2 --nic 400": "such as '400 Gb/s'",
    f"{SHOW} --nodes 2 --nic '400 Gb/sec'": "is no unit",
    f"{SHOW} --nodes 2 --nic '-400 Gb/s'": "not negative",
    f"{SHOW} --nodes 2 --nic '0 Gb/s'": "above 0",
    f"{SHOW} --nodes 2 --nic 'nan Gb/s'": "finite",
    f"{SHOW} --nodes 2 --nic ''": "leave the option out",
    f"{SHOW} --nodes 2 --fabric ''": "leave the option out",
    f"{SHOW} --nodes 2 --fabric infinband": "did you mean 'infiniband'?",
    f"{SHOW} --nodes 2 --oversubscription nan": "oversubscription: nan",
    f"{SHOW} --nodes 2 --oversubscription 0": "oversubscription: 0",
    f"{SHOW} --nodes 2 --oversubscription inf": "oversubscription: inf",
    f"{SHOW} --accelerator h101-sxm": "did you mean",
    f"{SHOW} --calibration {{absent}}.yaml": "no such calibration",
    "estimate llama3.1-8b feynman-nvl1152 --plan data=1152 --global-batch 1152": "nothing is published",
    "estimate llama3.1-8b groq3-lpx --plan data=256 --global-batch 256": "multiplies matrices in",
    # collectives
    f"{COST}": "one of --size",
    f"{COST} --size 1K --sizes 1K..2K": "one of --size",
    f"{COST} --size 1K --factor 2": "beside --sizes",
    f"{COST} --size 0": "size: 0",
    f"{COST} --size -5": "'-5'",
    f"{COST} --size nan": "'nan'",
    f"{COST} --size 1e30": "'1e30'",
    f"{COST} --size 99999999P": "1 EiB",
    f"{COST} --size 5GB/s": "K, M, G = 1024",
    f"{COST} --sizes 8..1": "must be above 0 and not above the last",
    f"{COST} --sizes 0..8": "must be above 0",
    f"{COST} --sizes 1..8G --factor 1": "--factor: '1'",
    f"{COST} --sizes 1..8G --factor nan": "--factor: 'nan'",
    f"{COST} --sizes 1..8G --factor 1.0000001": "--factor",
    "cost hgx-h100 all_redux --size 1K": "did you mean 'all_reduce'?",
    "cost hgx-h100 dispatch --size 1K": "leave this out",
    "cost hgx-h100 combine --size 1K": "leave this out",
    f"{COST} --size 1K --algorithm rign": "did you mean 'Ring'?",
    f"{COST} --size 1K --protocol ll12": "did you mean 'LL128'?",
    f"{COST} --size 1K --algorithm nvls --no-nvls": "no such way",
    f"{COST} --size 1K --algorithm nvls --protocol ll": "no such way",
    "cost dgx-1v all_reduce --size 1K --algorithm nvls": "no such way",
    f"{COST} --size 1K --library rccl": "it does not run on NVIDIA's GPUs of hgx-h100: say --library nccl",
    "cost mi300x all_reduce --size 1K --library nccl": "it does not run on AMD's GPUs of mi300x: say --library rccl",
    "cost mi300x all_reduce --size 1K --no-nvls": "'nccl'; it does not run on AMD's GPUs of mi300x: say --library rccl",
    "cost hgx-h100 dispatch --tokens 9 --hidden 9 --top-k 1 --experts 8 --multiprocessors 133": "at most the 132 of",
    f"{COST} --sizes 1K..": "the first and the last size belong here",
    f"{COST} --size 1K --library idael": "'nccl', 'rccl', 'gloo', 'ideal'",
    f"{COST} --size 1K --library ideal --algorithm ring": "leave this out",
    f"{COST} --size 1K --library ideal --no-nvls": "leave this out",
    f"{COST} --size 1K --library ideal --library-version 2.27": "leave this out",
    f"{COST} --size 1K --library-version newest": "a version such as 2.27",
    f"{COST} --size 1K --symmetric --library-version 2.26": "symmetric: 'NCCL 2.26'; only 2.27 or newer",
    f"{COST} --size 1K --symmetric --nodes 2": "that NVLink joins in one domain belong here",
    f"{COST} --size 1K --symmetric --algorithm ring": "'--algorithm ring'; NCCL has other kernels",
    f"{COST} --size 1K --symmetric --library ideal": "leave this out",
    f"{COST} --size 1K --symmetric --library rccl": "only nccl has symmetric windows",
    "cost hgx-h100 all_to_all --size 1K --symmetric": "only all_reduce, all_gather, reduce_scatter of GPUs",
    "cost hgx-h100 dispatch --tokens 9 --symmetric": "dispatch has no kernels for windows: leave this out",
    # figures
    f"{COST} --size 1K --plot {{folder}}/a.png": "a line needs more",
    f"{COST} --sizes 1K..2K --plot {{folder}}/a.gif": ".png, .svg, .pdf",
    f"{COST} --size 1K --plot {{folder}}/a.gif": ".png, .svg, .pdf",
    f"{PLAN} --plot {{folder}}/a.gif": ".png, .svg, .pdf",
    f"{COST} --sizes 1K..2K --plot {{absent}}/a.png": "cannot be written",
    f"{PLAN} --plot {{absent}}/a.png": "cannot be written",
    # words
    "": "a command is missing",
    "shwo": "did you mean 'show'?",
    "show": "Missing argument 'SYSTEM'",
    "show hgx-h100 extra": "unexpected extra argument",
    "show hgx-h100 --nodse 2": "No such option: --nodse",
    "show hgx-h100 --nodes": "requires an argument. (see `commsim show --help`)",
    f"{COST} --size": "requires an argument. (see `commsim cost --help`)",
    "systems --json=3": "does not take a value",
}


BRIDGE, GPU = "0000:10:00.0", gpu("0000:11:00.0", 0)
BOXES = {
    "apart": box(cpu(0, GPU, host="0x1"), cpu(0, gpu("0000:21:00.0", 1), host="0x2")),
    "loop": box(cpu(0, pci(BRIDGE, pci(BRIDGE, GPU)))),
    "unnamed": box(cpu(0, gpu("0000:11:00.0", 0, device="0x9999"))),
}
"""NCCL topology files: two hosts that nothing joins, a bridge below itself, a GPU that nobody knows."""


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    """Return files that are no models and no machines: absent, an empty folder, text, and 10 MB."""
    for name in ("text", "text.yaml", "text.xml", "text.txt"):
        (tmp_path / name).write_text("not what belongs here", encoding="utf-8")
    for name in ("large.json", "large.yaml", "large.xml"):
        (tmp_path / name).write_text("a" * 10_000_000, encoding="utf-8")
    for name, machine in BOXES.items():
        (tmp_path / f"{name}.xml").write_text(machine, encoding="utf-8")
    (tmp_path / "folder").mkdir()
    return {name: tmp_path / name for name in ("absent", "folder", "text", "large", *BOXES)}


@pytest.mark.parametrize("line", MISTAKES)
def test_mistake(commsim: Callable[..., Answer], places: dict[str, Path], line: str) -> None:
    answer = commsim(*shlex.split(line.format(**places)))
    assert (answer.code, answer.err.count("\n")) == (2, 1), answer.err
    assert answer.err.startswith("commsim: ")
    assert MISTAKES[line] in answer.err
    assert "Traceback" not in answer.err
