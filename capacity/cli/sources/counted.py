"""Results of counts that were made where the facts are: bounds, and descriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from capacity.checks import megabytes
from capacity.cli.output import print_json
from capacity.cli.selecting import Chosen
from capacity.cli.sources.files import (
    graph_json,
)
from capacity.cli.sources.stores import BYTES_A_FACT
from capacity.visible import visible

if TYPE_CHECKING:
    from capacity.stores.counts import StoreCounts


def memory_needed(counts: StoreCounts) -> str:
    """State what needs the facts in memory, and how much memory that is."""
    from capacity.database.io.sparql.endpoints import is_address

    how = "load a file of them, without --out-of-core"
    if is_address(counts.source):
        how = "load a part of them by Database.from_sparql"
    return (
        "exact slice and unfolding ranks, searches and certificates need the facts in memory, "
        f"about {megabytes(max(counts.facts * BYTES_A_FACT, 2 * 10**8))}: {how}"
    )


def print_rank(counts: StoreCounts, chosen: Chosen, as_json: bool) -> None:
    """Print counted bounds of the rank, in the keys of ``capacity rank``."""
    if as_json:
        slices = ("subject_slices", "predicate_slices", "object_slices")
        print_json(
            {
                **_of_file(counts, chosen),
                "triples": counts.facts,
                "subjects": counts.subjects,
                "predicates": counts.predicates,
                "objects": counts.objects,
                "functional": counts.functional,
                "multi_valued_pairs": counts.multi_valued_pairs,
                "bounds": {**dict.fromkeys(slices), "unfoldings": None, **counts.bounds()},
                "rank": counts.rank(),
                "effective_rank": None,
                "estimate": None,
                "memory_needed": counts.facts * BYTES_A_FACT,
            }
        )
        return
    roles = "subject, predicate, object"
    print(visible(_in_a_sentence(counts)))
    print(visible(repr(counts)))
    print(f"  triples                  {counts.facts}")
    print(f"  paper's count            {counts.paper}   min(sum_k |V_k|, sum_q |V_q|), Prop. 2.1")
    print(f"  sums of smaller sides    {' '.join(map(str, counts.slice_sums))}   {roles} slices")
    print(f"  private tokens           {' '.join(map(str, counts.private))}   {roles}")
    print(f"  rank                     [{counts.lower}, {counts.upper}]   counted")
    for line in counts.explanation:
        print(f"    {visible(line)}")
    print(f"  {memory_needed(counts)}")


def _in_a_sentence(counts: StoreCounts) -> str:
    below, above = counts.reasons
    least, most = f"{counts.lower:,}", f"{counts.upper:,}"
    where = most if counts.lower == counts.upper else f"between {least} and {most}"
    return f"The rank is {where}: at least {least}, because {below}; at most {most}, by {above}."


def print_description(counts: StoreCounts, chosen: Chosen, as_json: bool) -> None:
    """Print one row per predicate, in the keys of ``capacity describe``; None is for ranks."""
    if not as_json:
        print(counts)
        print(f"\n  {memory_needed(counts)}")
        return
    uncounted = ("label", "rank", "rank_share", "repeats")
    print_json(
        {
            **_of_file(counts, chosen),
            **counts.to_dict(),
            "tokens": None,
            "components": None,
            "bound": counts.upper,
            "predicates": [
                {
                    **dict.fromkeys(uncounted),
                    "example": [],
                    **row.to_dict(),
                    "facts_share": row.facts / counts.facts,
                }
                for row in counts.predicates_rows
            ],
            "advice": [],
            "memory_needed": counts.facts * BYTES_A_FACT,
        }
    )


def _of_file(counts: StoreCounts, chosen: Chosen) -> dict[str, Any]:
    """Keys of a file in the JSON; its hash and that of its facts aren't computed."""
    return {
        "source": counts.source,
        "sha256": None,
        "facts_sha256": None,
        "multi": "keep",
        "selection": graph_json(chosen),
    }
