"""The interval of a rank in a sentence.

The sentence states where the rank lies, and what bounds it on each side. The words are those of the
arguments that the certificates of both ends consist of, whose values add up to the ends; a bound of
unfoldings is stated for the tokens whose slices are independent.
"""

from __future__ import annotations

from collections.abc import Sequence

from capacity.rank.interval import RankInterval
from capacity.rank.verifier.argument import Argument
from capacity.rank.verifier.certificate import Certificate
from capacity.rank.verifier.kinds.published import Published, source_of
from capacity.rank.verifier.kinds.unfolding import Unfolding

ROLES = ("subjects", "predicates", "objects")
# kinds of arguments whose terms are simple tensors that are written down
TERMS = {"boxes", "decomposition", "algebraic decomposition", "complex decomposition"}
# by kind of argument, what proves a number from below
BELOW = {
    "substitution": "the substitution method removes {} slices one by one",
    "block substitution": "the substitution method removes {} slices, some of them together",
    "cases": "the substitution method removes {} slices one by one in each case",
    "koszul": "a Koszul flattening proves {}",
    "diagonalization": "slices that aren't diagonal in common bases prove {}",
    "algebra": "the product of an algebra proves {} (Alder and Strassen)",
    "rank-one locus": "slices without a basis of rank one prove {}",
    "rank-one completion": "objects whose completions of rank one don't span their space prove {}",
    "pencil": "the canonical form of two slices proves {}",
}
# and from above
ABOVE = {
    "pencil": "by the canonical form of two slices",
    "diagonalization": "by slices that are diagonal in common bases",
    "paired slices": "by the canonical forms of pairs of slices",
    "enclosure": "by an exact decomposition near a numerical one",
    "maximal rank": "because no tensor of this format takes more",
}


def in_a_sentence(interval: RankInterval) -> str:
    """State the interval of a rank, and in words what proves each end.

    Parameters
    ----------
    interval : RankInterval
        Interval of the rank, or of the effective rank.

    Returns
    -------
    str
        A sentence.

    Examples
    --------
    >>> from capacity import Database, rank_interval
    >>> facts = [("Ada", "born in", "London"), ("Alan", "born in", "London")]
    >>> print(in_a_sentence(rank_interval(Database.from_triples(facts))))
    The rank is 1: at least 1, because there is a fact; at most 1, because one simple tensor gives
    the facts.
    """
    lower, upper = interval.certificates
    name = lower.what
    if upper.value == 0:
        return f"The {name} is 0: every entry is 0."
    least, most = f"{lower.value:,}", f"{upper.value:,}"
    where = most if interval.closed else f"between {least} and {most}"
    return (
        f"The {name} is {where}: at least {least}, because {_below(lower)}; at most {most}, "
        f"because {_above(upper)}."
    )


def _below(lower: Certificate) -> str:
    """State what bounds from below, in a sum if it is several arguments; 0 needs none."""
    said: dict[str, list[int]] = {}
    for argument in lower.arguments:
        if argument.value:
            said.setdefault(_proving(argument, lower), []).append(argument.value)
    if not said:
        return "no rank is smaller"
    parts = [(words, sum(values), len(values)) for words, values in said.items()]
    reasons = _listed([
        words.format(f"{n:,}") + (f" (over {among:,} parts)" if among > 1 else "")
        for words, n, among in parts
    ])  # fmt: skip
    if len(parts) == 1:
        return reasons
    what = "the facts" if lower.multi is not None else "the tensor"
    total = " + ".join(f"{n:,}" for _, n, _ in parts)
    return f"{total} of different parts of {what} add up: {reasons}"


def _proving(argument: Argument, lower: Certificate) -> str:
    """Return words for what an argument proves, with a place for the number."""
    if isinstance(argument, Unfolding):
        return _independent(argument, lower)
    if isinstance(argument, Published):
        what = "the facts" if lower.multi is not None else "the tensor"
        return (
            f"{source_of(argument)} proved {{}} for {argument.name}, which a part of {what} is, "
            "but for the order and the signs of indices"
        )
    return BELOW.get(argument.kind, f"an argument of the kind {argument.kind!r} proves {{}}")


def _independent(argument: Unfolding, lower: Certificate) -> str:
    """Name the slices that are independent: those of tokens in a role, or of a mode."""
    facts = lower.multi is not None
    if sum(isinstance(one, Unfolding) * one.value for one in lower.arguments) == 1:
        return "there is a fact" if facts else "an entry isn't 0"
    if lower.groups or argument.columns.shape[1] != 2:
        return "an unfolding has rank {}"
    # what is known for the effective rank are the rows of the last unfolding with an entry
    if lower.quantity == "effective_rank" and argument.mode == 2:
        known = "the objects of {} (subject, predicate) pairs" if facts else "{} fibers of mode 2"
    else:
        role = ROLES[argument.mode]
        known = f"the facts of {{}} {role}" if facts else f"{{}} slices of mode {argument.mode}"
    return f"{known} are linearly independent"


def _above(upper: Certificate) -> str:
    """State what bounds from above, in a sum if it is several arguments."""
    facts = upper.multi is not None
    why: dict[str, int] = {}
    for one in upper.arguments:
        # all that are written down count together
        words = "" if one.kind in TERMS else ABOVE.get(
            one.kind, f"by an argument of the kind {one.kind!r}"
        )  # fmt: skip
        why[words] = why.get(words, 0) + one.value
    n = sum(why.values())
    if upper.quantity == "rank":
        what = "the facts" if facts else "the tensor"
        verb = "gives" if n == 1 else "add up to"
    else:
        what = "the facts at every pair that has one" if facts else "the observed fibers"
        verb = "agrees with" if n == 1 else "add up to a tensor that agrees with"
    if len(why) == 1:
        terms = "one simple tensor" if n == 1 else f"{n:,} simple tensors"
        return " ".join([terms, verb, what, *filter(None, why)])
    kinds = _listed([f"{one:,} {words or 'that are written down'}" for words, one in why.items()])
    total = " + ".join(f"{one:,}" for one in why.values())
    return f"{total} simple tensors together {verb} {what}: {kinds}"


def _listed(parts: Sequence[str]) -> str:
    *first, last = parts or [""]
    return f"{', '.join(first)}, and {last}" if first else last
