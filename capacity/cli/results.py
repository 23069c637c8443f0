"""Results of ``capacity rank`` for JSON and in lines, and verdicts of ``capacity verify``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from capacity.cli.sources.input import Input
from capacity.database.facts import Database
from capacity.visible import visible

if TYPE_CHECKING:
    from capacity.rank.bounds import Bounds
    from capacity.rank.interval import RankInterval


def verdict_in_words(row: dict[str, Any], selection: dict[str, Any] | None) -> str:
    """Describe a verdict in one line: the bound, its facts, and whether it is proved."""
    if "model" in row:
        ends = "none" if row["lower"] is None else f"{row['lower']} to {row['upper']}"
        if row["upper"] is None and row["lower"] is not None:
            ends = f"at least {row['lower']}"
        what = f"dimension of {row['model']} for {row['task']}"
        bound = f"{what}, subjects and objects {whose(row['shared'])}: {ends}"
    else:
        words = f"{'border ' * row.get('border', False)}{row['quantity'].replace('_', ' ')}"
        over = f" over {row['field']}" if "field" in row else ""
        bound = f"{row['side']} bound {row['value']} of the {words}{over}"
    sources = row.get("cited")
    by = f" by a published theorem ({', '.join(sources)})" if sources else ""
    verdict = f"proved{by}" if row["proved"] else f"not proved, {row['reason']}"
    if "entries" in row:
        return f"{bound}, for the tensor of {row['entries']:,} entries: {verdict}"
    all_ = row["facts"] == row["of"]
    facts = f"all {row['of']:,}" if all_ else f"{row['facts']:,} of the file's {row['of']:,}"
    under = "their tensor" if row["multi"] is None else f"multi={row['multi']}"
    if selection is not None:
        under += f"; selection: {_selected(selection)}"
    return f"{bound}, for {facts} facts ({under}): {verdict}"


def _selected(selection: dict[str, Any]) -> str:
    return ", ".join(
        f"{name}={', '.join(map(str, value)) if isinstance(value, list | tuple) else value}"
        for name, value in selection["options"].items()
    )


def proved_ends(rows: list[dict[str, Any]]) -> tuple[int | None, int | None]:
    """Return the best proved bounds of the rank, if all are about the same facts and one field."""
    of_rank = [row for row in rows if row["quantity"] == "rank" and row["proved"]]
    about = {tuple(row.get(key) for key in ("multi", "field", "border")) for row in of_rank}
    if len(about) > 1:
        return None, None
    lower = [row["value"] for row in of_rank if row["side"] == "lower"]
    upper = [row["value"] for row in of_rank if row["side"] == "upper"]
    return max(lower, default=None), min(upper, default=None)


def whose(shared: bool) -> str:
    """Describe the entities of a dimension: shared by subjects and objects, or not."""
    return "shared" if shared else "not shared"


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
    from capacity.rank.sentence import in_a_sentence

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
