"""The result of ``capacity rank``: sizes and bounds as JSON has them, and it all in a few lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from capacity.cli.sources.input import Input
from capacity.database.facts import Database
from capacity.visible import visible

if TYPE_CHECKING:
    from capacity.rank.bounds import Bounds
    from capacity.rank.interval import RankInterval

SLICES = ("subject_slices", "predicate_slices", "object_slices")


def sizes_json(read: Input) -> dict[str, Any]:
    """Return hashes and sizes, in the keys of triples, of facts of another arity, or of tensors."""
    of = read.of
    if not isinstance(of, Database):
        return {
            "tensor_sha256": of.sha256,
            "entries": of.n_entries,
            "order": of.order,
            "shape": list(of.shape),
        }
    sizes: dict[str, Any] = {"facts_sha256": of.facts_sha256, "multi": of.multi}
    if of.arity == 3:
        names = ("triples", "subjects", "predicates", "objects")
        sizes |= zip(names, (of.n_facts, *of.shape), strict=True)
    else:
        sizes |= {"facts": of.n_facts, "arity": of.arity, "shape": list(of.shape)}
    return {
        **sizes,
        "functional": of.is_functional,
        "multi_valued_pairs": of.n_multi_valued_pairs,
    }


def bounds_json(read: Input, bounds: Bounds) -> dict[str, Any]:
    """The bounds that need no search; slices of triples are named by what is fixed."""
    word = _word(read)
    slices: dict[str, Any] = {"slices": list(bounds.slices)}
    if word == "triples":
        slices = dict(zip(SLICES, bounds.slices, strict=True))
    return {
        word: bounds.triples,
        **slices,
        "paper": bounds.paper,
        "unfoldings": list(bounds.unfoldings),
    }


def _word(read: Input) -> str:
    """Name what is counted: triples, facts of another arity, or entries of a tensor."""
    if isinstance(read.of, Database):
        return "triples" if read.of.arity == 3 else "facts"
    return "entries"


def print_result(
    result: dict[str, Any], read: Input, bounds: Bounds, intervals: dict[str, RankInterval]
) -> None:
    """Print the result in a few lines: a sentence for each interval, then the numbers."""
    from capacity.rank.interval import in_a_sentence

    for interval in intervals.values():
        print(visible(in_a_sentence(interval)))
    word, fit, order = _word(read), result["estimate"], len(bounds.unfoldings)
    print(visible(f"{read.source}: {read.of!r}"))
    print(f"  {word:<24} {bounds.triples}")
    triples = word == "triples"
    counted = "min(sum_k |V_k|, sum_q |V_q|), Prop. 2.1" if triples else "as Prop. 2.1 counts"
    print(f"  paper's count            {bounds.paper}   {counted}")
    slices = " ".join(map(str, bounds.slices))
    if order == 3:
        fixed = "subject, predicate, object" if triples else "in each mode"
        print(f"  sums of slice ranks      {slices}   {fixed}")
    elif order > 3:
        ways = f"smallest of {len(bounds.slices)} choices of two modes for the slices"
        print(f"  sums of slice ranks      {min(bounds.slices)}   {ways}")
    unfoldings = " ".join(map(str, bounds.unfoldings))
    print(f"  unfolding ranks          {unfoldings}{'' if triples else '   in each mode'}")
    for interval in intervals.values():
        known = "known exactly" if interval.closed else "certified"
        what = interval.certificates.lower.what
        cites = f", citing {'; '.join(interval.cited)}" if interval.cited else ""
        print(f"  {what:<24} {interval}   {known}{cites}")
        for line in interval.explanation:
            print(f"    {visible(line)}")
    if fit:
        print(f"  estimate                 {fit['rank']}   {fit['method']}, residual "
              f"{fit['residual']:.1e}; no certificate")  # fmt: skip
