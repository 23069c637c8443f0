"""An interval of the rank in a sentence: where the rank lies, and what bounds it on each side.

The words are those of the arguments that the certificates of both ends consist of, whose values add
up to the ends; a bound of unfoldings is said of the tokens whose slices are independent.
"""

from __future__ import annotations

from collections.abc import Sequence

from capacity.rank.interval import RankInterval
from capacity.rank.verifier.argument import Argument
from capacity.rank.verifier.certificate import Certificate
from capacity.rank.verifier.kinds.unfolding import Unfolding

ROLES = ("subjects", "predicates", "objects")
# kinds of arguments whose terms are simple tensors that are written down
TERMS = {"boxes", "decomposition", "algebraic decomposition"}
BELOW = {
    "substitution": "the substitution method removes {} slices one by one",
    "block substitution": "the substitution method removes {} slices, some of them together",
    "cases": "the substitution method removes {} slices one by one in each case",
    "koszul": "the rank of a Koszul flattening takes {}",
    "diagonalization": "slices that aren't diagonal in common bases take {}",
    "algebra": "the product of an algebra takes {} (Alder and Strassen)",
    "rank-one locus": "slices without a basis of rank one take {}",
    "rank-one completion": "objects whose completions of rank one don't span their space take {}",
    "pencil": "the canonical form of two slices takes {}",
}
ABOVE = {
    "pencil": "the canonical form of two slices takes {}",
    "diagonalization": "slices that are diagonal in common bases take {}",
    "paired slices": "the canonical forms of pairs of slices take {}",
    "enclosure": "an exact decomposition with {} terms lies near a numerical one",
    "maximal rank": "no tensor of this format takes more than {}",
}


def in_a_sentence(interval: RankInterval) -> str:
    """Say where a rank lies, and in words what proves each end.

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
    The rank is 1: no less, because there is a fact; no more, because one simple tensor gives the
    facts.
    """
    lower, upper = interval.lower, interval.upper
    name = lower.quantity.replace("_", " ")
    if upper.value == 0:
        return f"The {name} is 0: every entry is 0."
    where = f"{upper.value:,}"
    if not interval.closed:
        where = f"between {lower.value:,} and {where}"
    return (
        f"The {name} is {where}: no less, because {_below(lower)}; no more, because "
        f"{_above(upper)}."
    )


def _below(lower: Certificate) -> str:
    """Say what bounds from below; 0 needs no argument."""
    parts = [
        _independent(argument, lower)
        if isinstance(argument, Unfolding)
        else _said(BELOW, argument.kind, argument.value)
        for argument in lower.arguments
        if argument.value
    ]
    return _listed(parts) or "no rank is"


def _independent(argument: Unfolding, lower: Certificate) -> str:
    """Say which slices are independent: those of tokens in a role, or of a mode."""
    n, facts = argument.value, lower.multi is not None
    if n == 1:
        return "there is a fact" if facts else "an entry isn't 0"
    if lower.groups or argument.columns.shape[1] != 2:
        return f"an unfolding has rank {n:,}"
    # what is known for the effective rank are the rows of the last unfolding with an entry
    if lower.quantity == "effective_rank" and argument.mode == 2:
        known = "the objects of {} (subject, predicate) pairs" if facts else "{} fibers of mode 2"
    else:
        role = ROLES[argument.mode]
        known = f"the facts of {{}} {role}" if facts else f"{{}} slices of mode {argument.mode}"
    return f"{known.format(f'{n:,}')} are linearly independent"


def _above(upper: Certificate) -> str:
    """Say what bounds from above; all simple tensors that are written down count together."""
    facts = upper.multi is not None
    n = sum(one.value for one in upper.arguments if one.kind in TERMS)
    if upper.quantity == "rank":
        what = "the facts" if facts else "the tensor"
        verb = "gives" if n == 1 else "add up to"
    else:
        what = "the facts at every pair that has one" if facts else "the observed fibers"
        verb = "agrees with" if n == 1 else "add up to a tensor that agrees with"
    terms = "one simple tensor" if n == 1 else f"{n:,} simple tensors"
    others: Sequence[Argument] = [one for one in upper.arguments if one.kind not in TERMS]
    return _listed([
        *([f"{terms} {verb} {what}"] if n else []),
        *(_said(ABOVE, one.kind, one.value) for one in others),
    ])  # fmt: skip


def _said(words: dict[str, str], kind: str, value: int) -> str:
    """Say what an argument gives; one of a kind from outside the library by its name."""
    return words.get(kind, f"an argument of the kind {kind!r} gives {{}}").format(f"{value:,}")


def _listed(parts: Sequence[str]) -> str:
    *first, last = parts or [""]
    return f"{', '.join(first)}, and {last}" if first else last
