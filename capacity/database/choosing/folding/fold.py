"""Folds: syntax of RDF, and the facts that it denotes.

======================  ============================================================================
``lists``               a fact about a list becomes a fact about each of its members
                        (`capacity.database.choosing.folding.graph`)
``restrictions``        ``A subClassOf (p some B)`` becomes ``A p B``
                        (`capacity.database.choosing.folding.restrictions`)
``statements``          a statement node becomes the fact that it states, without its qualifiers
                        (`capacity.database.choosing.folding.statements`)
``statements:order-5``  facts (subject, predicate, object, qualifier, value), the value as object
``statements:order-4``  facts (subject, predicate, value, object) by the only qualifier there is
``statements:NAME``     the same by this qualifier: its IRI, prefixed name, local name or label
======================  ============================================================================

Statements come first, then restrictions, then lists, whatever the order in which they are given.
Facts of order 4 and 5 are those with a qualifier alone, as ``annotations_of_facts`` makes them;
they leave nothing for lists and restrictions, which aren't given with them. The value of a
qualifier of order 4 becomes a part of the key, as a time does in "who was it in 2001".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from capacity.checks import nearest, shown
from capacity.database.arity import not_triples
from capacity.database.choosing.folding.graph import Graph, Rows
from capacity.database.choosing.lookup import position
from capacity.database.terms.term import display
from capacity.database.terms.vocabularies import known_prefixes
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError, InvalidTypeError

if TYPE_CHECKING:
    from capacity.database.facts import Database

FOLDS = ("lists", "restrictions", "statements")
# qualifiers that a message lists
_MOST = 5


@briefly_shown
@dataclass(frozen=True)
class Folded:
    """The numbers of a fold.

    Attributes
    ----------
    of, facts : int
        Number of facts before and after it.
    counts : mapping of str to int
        Numbers of lists, of axioms about restrictions and of statements that were folded; under
        ``..._kept`` of lists, restrictions and statements that weren't; and of what was omitted.
    """

    of: int
    facts: int
    counts: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        counts = [f"{name.replace('_', ' ')} {n:,}" for name, n in self.counts.items() if n]
        said = ", ".join(counts) or "there is nothing to fold"
        return f"{self.of:,} facts are folded to {self.facts:,}: {said}"

    def to_dict(self) -> dict[str, int]:
        """Return the numbers, for JSON."""
        return {"of": self.of, "facts": self.facts, **self.counts}


def folds_of(value: Any) -> tuple[str, ...]:
    """Return what is to be folded, each once, of names with commas or a sequence of names.

    Raises
    ------
    InvalidArgumentError
        For an unknown name, two forms of statements, or facts of order 4 or 5 beside lists or
        restrictions.
    InvalidTypeError
        For what is no name.
    """
    given = [value] if isinstance(value, str) else value
    if isinstance(given, Mapping) or not hasattr(given, "__iter__"):
        raise InvalidTypeError(f"`fold` must be a sequence of names; got {shown(value)}.")
    names: list[str] = []
    for one in given:
        if not isinstance(one, str):
            raise InvalidTypeError(f"`fold` must hold names; got {shown(one)}.")
        names += [name.strip() for name in one.split(",")]
    for name in names:
        kind, _, how = name.partition(":")
        if kind not in FOLDS or (kind != "statements" and ":" in name) or (":" in name and not how):
            raise InvalidArgumentError(
                f"`fold` must hold {', '.join(FOLDS)}, statements:order-4, statements:order-5 or "
                f"statements:QUALIFIER; got {shown(name)}.{nearest(kind, FOLDS)}"
            )
    folds = tuple(dict.fromkeys(names))
    of_statements = [name for name in folds if name.startswith("statements")]
    if len(of_statements) > 1:
        raise InvalidArgumentError(
            f"`fold` must hold one form of statements; got {' and '.join(of_statements)}."
        )
    if len(folds) > 1 and of_statements and ":" in of_statements[0]:
        raise InvalidArgumentError(
            f"{of_statements[0]} makes facts of another arity than 3, in which there are no lists "
            "and no restrictions. Omit the others from `fold`."
        )
    return folds


def fold(db: Database, folds: tuple[str, ...]) -> tuple[Database, Folded | None]:
    """Fold syntax to facts; the policy for multi-valued pairs is that of the database.

    Parameters
    ----------
    db : Database
        Facts of arity 3.
    folds : tuple of str
        What to fold, as `folds_of` returns it.

    Raises
    ------
    InvalidArgumentError
        For facts of another arity, if no fact stays, if it would make too many facts, or for a
        qualifier that no statement has.
    """
    if not folds or not db.n_facts:
        return db, None
    if db.arity != 3:
        raise not_triples("`fold`", db.arity)
    graph = Graph.of(db)
    how = next((name.partition(":")[2] for name in folds if name.startswith("statements:")), "")
    if how:
        rows, counts = _qualified(db, graph, how)
    else:
        graph, counts = _folded(graph, folds)
        rows = graph.rows
    if not len(rows):
        raise InvalidArgumentError(
            f"A fold must leave at least one fact; {Folded(db.n_facts, 0, counts)}."
        )
    made = type(db).from_ids(
        graph.every_term, rows, arity=rows.shape[1], multi=db.multi, prefixes=db.prefixes
    )
    made = replace(made, source=db.source, selected=db.selected)
    return made, Folded(db.n_facts, made.n_facts, counts)


def _folded(graph: Graph, folds: tuple[str, ...]) -> tuple[Graph, dict[str, int]]:
    """Fold statements, restrictions and lists to facts of arity 3, in this order."""
    from capacity.database.choosing.folding.graph import fold_lists
    from capacity.database.choosing.folding.restrictions import fold_restrictions
    from capacity.database.choosing.folding.statements import find_statements

    counts: dict[str, int] = {}
    if "statements" in folds:
        stated = find_statements(graph)
        counts |= {**stated.counts, "qualifiers_omitted": len(stated.qualified)}
        graph = graph.rearranged(~stated.gone, stated.facts)
    if "restrictions" in folds:
        graph, of_restrictions = fold_restrictions(graph)
        counts |= of_restrictions
    if "lists" in folds:
        graph, of_lists = fold_lists(graph)
        counts |= of_lists
    return graph, counts


def _qualified(db: Database, graph: Graph, how: str) -> tuple[Rows, dict[str, int]]:
    """Make facts of the qualifiers of statements: of all, or of one."""
    from capacity.database.choosing.folding.statements import find_statements

    stated = find_statements(graph)
    every = graph.rearranged(~stated.gone, stated.facts).rows
    chosen = list(dict.fromkeys(stated.qualified))
    n_all = len(chosen)
    if not chosen:
        raise InvalidArgumentError(
            f"`fold` = statements:{how} needs statements with qualifiers; there are none among "
            f"{len(stated.facts):,} statements. Fold statements alone."
        )
    if how == "order-5":
        rows = [(*fact, q, v) for fact, q, v in chosen]
    else:
        by = _qualifier(db, graph, Counter(q for _, q, _ in chosen), how)
        chosen = [one for one in chosen if one[1] == by]
        rows = [(s, p, v, o) for (s, p, o), _, v in chosen]
    counts = {
        **stated.counts,
        "qualifiers_omitted": n_all - len(chosen),
        "facts_without_qualifier_omitted": len(every) - len({fact for fact, _, _ in chosen}),
    }
    return np.array(rows, np.int64), counts


def _qualifier(db: Database, graph: Graph, counts: Counter[int], how: str) -> int:
    """Find the number of the qualifier that is asked for."""
    numbers = list(counts)
    if how != "order-4":
        name = how[1:-1] if how.startswith("<") and how.endswith(">") else how
        terms = tuple(map(graph.term, numbers))
        return numbers[position(name, terms, known_prefixes(db), lambda: db.labels, "qualifier")]
    if len(numbers) > 1:
        prefixes = known_prefixes(db)
        some = ", ".join(
            f"{display(graph.term(q), prefixes)} ({n:,})" for q, n in counts.most_common(_MOST)
        )
        raise InvalidArgumentError(
            f"`fold` = statements:order-4 needs statements with one qualifier; these have "
            f"{len(numbers)}. The most frequent are {some}: fold statements:QUALIFIER, or "
            "statements:order-5 for all."
        )
    return numbers[0]
