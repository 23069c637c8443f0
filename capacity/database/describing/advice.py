"""Advice on what to select: what each part of the facts carries, by leaving it away.

A selection keeps a part of the subjects, predicates and objects, so that its tensor is a part of
the tensor, and neither its rank nor a sum of its slice ranks is larger. What a part carries is the
difference: each number here is computed from the facts that a selection keeps.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from capacity.database.choosing.criteria import rows_of
from capacity.database.choosing.selection import Selected, Selection
from capacity.database.describing.rows import PredicateRow
from capacity.database.terms.term import Term, display
from capacity.database.terms.vocabularies import known_prefixes
from capacity.display import briefly_shown, percent
from capacity.errors import InvalidArgumentError
from capacity.exact.ranks import slices_rank

if TYPE_CHECKING:
    from capacity.database.facts import Database

# of each criterion, what it drops in the words of who keeps the facts
_KINDS = {
    "annotations": "labels, comments and other annotations",
    "literals": "literals",
    "schema": "types and other schema",
    "blank_nodes": "facts with blank nodes",
}
# predicates that repeat another or identify their subjects, which advice is on
_MOST_NAMED = 5


@briefly_shown
@dataclass(frozen=True)
class Advice:
    """A part of the facts that a selection would omit, and what it carries.

    Attributes
    ----------
    text : str
        The advice, a sentence.
    selection : Selection
        The selection that omits the part.
    omits : int
        Number of facts that it omits.
    facts_share : float
        Their share of all facts.
    leaves : int
        Upper bound of the rank of the facts that stay.
    rank_share : float
        The part of the upper bound that goes.
    """

    text: str
    selection: Selection
    omits: int
    facts_share: float
    leaves: int
    rank_share: float

    def to_dict(self) -> dict[str, Any]:
        """Return the advice for JSON."""
        return {
            "text": self.text,
            "options": Selected(self.selection, 0, 0).to_dict()["options"],
            "omits": self.omits,
            "facts_share": self.facts_share,
            "leaves": self.leaves,
            "rank_share": self.rank_share,
        }


def slice_bound(db: Database) -> int:
    """Bound the rank by the smallest sum of slice ranks."""
    return min(slices_rank(db.tensor(), (mode,)) for mode in range(3))


def advice_on(db: Database, rows: Sequence[PredicateRow], bound: int) -> tuple[Advice, ...]:
    """Compute what each part of the facts carries, those that carry most first.

    Parameters
    ----------
    db : Database
        Facts of arity 3.
    rows : sequence of PredicateRow
        Its predicates.
    bound : int
        Its `slice_bound`.

    Returns
    -------
    tuple of Advice
        On annotations, literals, schema and blank nodes; on predicates that repeat others; and on
        those by which each subject has a value of its own. Parts that are empty or all are omitted.
    """
    asked = [(what, Selection(**{name: "drop"})) for name, what in _KINDS.items()]  # type: ignore[arg-type]
    identifiers = [row for row in rows if row.identifies and not row.annotation]
    asked += [_identified(identifiers[:_MOST_NAMED])] if identifiers else []
    found = [_measured(db, bound, what, selection) for what, selection in asked]
    found += [_repeated(db, bound, row) for row in _copies(rows)]
    known = [advice for advice in found if advice is not None]
    return tuple(sorted(known, key=lambda advice: -advice.rank_share))


def _measured(db: Database, bound: int, what: str, selection: Selection) -> Advice | None:
    kept = _kept(db, selection)
    if kept is None:
        return None
    part, omits = kept
    leaves = slice_bound(part)
    facts, rank = omits / db.n_facts, 1 - leaves / bound
    text = (
        f"{what} are {percent(facts)} of the facts and carry {percent(rank)} of the rank: "
        f"`{flags(selection, named(db))}` leaves {_left(part, leaves)}"
    )
    return Advice(text, selection, omits, facts, leaves, rank)


def _left(part: Database, leaves: int) -> str:
    return f"{part.n_facts:,} facts of rank at most {leaves:,}"


def _kept(db: Database, selection: Selection) -> tuple[Database, int] | None:
    """Return the facts that a selection keeps; None if these are all of them, or none."""
    try:
        rows, found = rows_of(db, selection)
    except InvalidArgumentError:
        # a selection that keeps nothing is no advice
        return None
    omits = found.of - found.kept
    return (db.subset(rows), omits) if omits else None


def _identified(rows: Sequence[PredicateRow]) -> tuple[str, Selection]:
    *others, last = (row.name for row in rows)
    names = f"{', '.join(others)} and {last}" if others else last
    what = f"values of {names}, which no two subjects share,"
    return what, Selection(exclude=tuple(row.predicate for row in rows))


def _copies(rows: Sequence[PredicateRow]) -> list[PredicateRow]:
    """Choose predicates that another one repeats whole, one of each pair."""
    found: list[PredicateRow] = []
    spoken: set[str] = set()
    for row in rows:
        if row.facts == 1 or row.repeats is None or row.repeats.by == "partly":
            continue
        if row.repeated in spoken:
            continue
        spoken.add(row.name)
        found.append(row)
    return found[:_MOST_NAMED]


def _repeated(db: Database, bound: int, row: PredicateRow) -> Advice | None:
    selection = Selection(exclude=(row.predicate,))
    kept = _kept(db, selection)
    if kept is None or row.repeats is None:
        return None
    part, omits = kept
    leaves = slice_bound(part)
    option = flags(selection, named(db))
    text = f"{row.name} {row.in_words()}, fact by fact: `{option}` leaves {_left(part, leaves)}"
    if row.repeats.by == "equal" and not row.repeats.inverse:
        text += "; the rank itself stays the same"
    return Advice(text, selection, omits, omits / db.n_facts, leaves, 1 - leaves / bound)


def named(db: Database) -> Callable[[Term], str]:
    """Return the function that names terms as the options of a selection take them."""
    prefixes = known_prefixes(db)
    return lambda term: display(term, prefixes)


def flags(selection: Selection, name_of: Callable[[Term], str]) -> str:
    """Write a selection as options of the command, with terms by their names."""
    parts: list[str] = []
    for name, value in selection.options().items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, str):
            parts.append(f"{flag} {value}")
        else:
            names = (name_of(one) if isinstance(one, Term) else str(one) for one in value)
            parts += [f"{flag.removesuffix('s')} {shlex.quote(one)}" for one in names]
    return " ".join(parts)
