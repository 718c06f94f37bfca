"""Which documents stand behind an estimate?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from commsim.figures import Figure
from commsim.hardware import shelf
from commsim.training.compute import kernel_figures
from commsim.training.setting import UNFUSED
from commsim.units import show

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from commsim.libraries.library import Library
    from commsim.training.passes import Said
    from commsim.training.setting import Setting


@dataclass(frozen=True)
class Cited:
    """One figure behind an estimate: what it is, its value, how it is known, and the documents (by short name)."""

    what: str
    value: str
    status: str
    documents: tuple[str, ...] = ()

    def __str__(self) -> str:
        documents = f" [{', '.join(self.documents)}]" if self.documents else ""
        return f"{self.what}: {self.value}, {self.status}{documents}"


class Sources(tuple[Cited, ...]):
    """The figures behind an estimate; printed, one line each, with the titles of the documents below."""

    __slots__ = ()

    @property
    def documents(self) -> dict[str, str]:
        """The title of each document by its short name, each once."""
        known = shelf.sources()
        names = dict.fromkeys(name for one in self for name in one.documents)
        return {name: known[name].title if name in known else "" for name in names}

    def __str__(self) -> str:
        titles = [f"[{name}] {title}" for name, title in self.documents.items() if title]
        return "\n".join([*map(str, self), *titles])


def sources(setting: Setting, said: Iterable[Said], library: Library) -> Sources:
    """Return the figures that an estimate rests on: of the model, the accelerator, its kernels, links, the library."""
    model, fitted = setting.model, getattr(library, "fitted", None)
    found = [Cited(f"model {model.name}", f"{len(model.layers)} layers", "given", (model.source,))]
    found += [*_of_accelerator(setting), *_of_kernels(setting), *_of_links(said)]
    return Sources(found + ([Cited("library", fitted.name, "fitted", (fitted.source,))] if fitted else []))


def _of_accelerator(setting: Setting) -> Iterator[Cited]:
    gpu, recipe = setting.system.accelerator, setting.recipe
    for name in sorted({recipe.matmul_format, recipe.other_format}):
        yield _cited(f"{gpu.name} {name} dense peak", gpu.peak[name], "FLOP/s")
        if name in gpu.achieved:
            yield _cited(f"{gpu.name} {name} best matmul over peak", gpu.achieved[name], "1")
    yield _cited(f"{gpu.name} memory", gpu.memory, "B")
    yield _cited(f"{gpu.name} memory bandwidth", gpu.memory_bandwidth, "B/s")


def _of_kernels(setting: Setting) -> Iterator[Cited]:
    name, kernel = setting.system.accelerator.architecture, setting.recipe.attention
    figures = kernel_figures(setting.system.accelerator)
    yield _cited(f"{name} sustained over best matmul", figures.sustained, "1")
    yield _cited(f"{name} norms etc. over memory bandwidth", figures.passing, "1")
    if kernel != UNFUSED:
        attention = figures.kernel(kernel)
        yield _cited(f"{name} attention forward over peak", attention.forward, "1")
        yield _cited(f"{name} attention backward over peak", attention.backward, "1")


def _of_links(said: Iterable[Said]) -> Iterator[Cited]:
    """The links that carry something, each once."""
    costs = [one.timing.choice(0).cost for one in said]
    used = {link.kind: link for cost in costs for place, link in enumerate(cost.kinds) if cost.load[:, place].any()}
    for kind, link in used.items():
        yield _cited(f"{kind} bandwidth", link.bandwidth, "B/s")
        yield _cited(f"{kind} latency", link.latency, "s")


def _cited(what: str, value: float, dimension: str) -> Cited:
    known = (value.status, value.source) if isinstance(value, Figure) else ("given", ())
    return Cited(what, show(value, dimension, 4), *known)
