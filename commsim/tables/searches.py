"""What are the rows of a search: the best plans, and why each is not the first?"""

from __future__ import annotations

from commsim.tables.records import Record, records
from commsim.training.search.found import Found
from commsim.training.search.search import Search


@records.register
def _search(search: Search) -> list[Record]:
    return [row for found in search.top(search.shown) for row in records(found)]


@records.register
def _found(found: Found) -> list[Record]:
    return [
        {
            "plan": found.plan.text,
            "virtual_stages": found.plan.virtual,
            "zero": found.plan.zero,
            "micro_batch": found.recipe.micro_batch,
            "recompute": found.recipe.recompute,
            "step_time_s": found.step_time,
            "memory_bytes": found.memory,
            "why_not_first": found.why_not_first,
        }
    ]
