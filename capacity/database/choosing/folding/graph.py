"""Triples as numbers of terms, with the questions that folding asks of them."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity.database.terms.columns import CODES, TermColumns
from capacity.database.terms.term import Term, blank_names, unchecked
from capacity.database.terms.vocabularies import RDF_TYPE
from capacity.errors import InvalidArgumentError

if TYPE_CHECKING:
    from capacity.database.facts import Database

Rows: TypeAlias = NDArray[np.int64]
Row: TypeAlias = tuple[int, int, int]
# number of a term that there isn't
NONE = -1
# facts that a fold makes at most: this, or this many times the facts if that is more
FREE_MADE, MAX_MADE = 10**6, 16


@dataclass(frozen=True)
class Graph:
    """Facts of arity 3, as numbers of terms.

    Attributes
    ----------
    tokens : sequence of Term
        Terms in ascending order, by number.
    rows : ndarray of int64, shape (n_facts, 3)
        The facts.
    added : dict of Term to int
        Numbers of terms that aren't among the tokens.
    """

    tokens: Sequence[Term]
    rows: Rows
    added: dict[Term, int] = field(default_factory=dict)

    @classmethod
    def of(cls, db: Database) -> Graph:
        """Take the facts of a database."""
        return cls(db.tokens, db.token_triples.astype(np.int64))

    def number(self, term: Term) -> int:
        """Return the number of a term; `NONE` if there is no such term."""
        at = bisect_left(self.tokens, term)
        if at < len(self.tokens) and self.tokens[at] == term:
            return at
        return self.added.get(term, NONE)

    def iri(self, text: str) -> int:
        """Return the number of an IRI; `NONE` if there is no such term."""
        return self.number(Term("iri", text))

    def numbered(self, text: str) -> int:
        """Return the number of an IRI, which is added if there is no such term."""
        if (found := self.iri(text)) == NONE:
            found = self.added[Term("iri", text)] = len(self.tokens) + len(self.added)
        return found

    def term(self, number: int) -> Term:
        """Return the term of a number."""
        if number < len(self.tokens):
            return self.tokens[number]
        return list(self.added)[number - len(self.tokens)]

    @cached_property
    def every_term(self) -> Sequence[Term]:
        """All terms, by their numbers."""
        return [*self.tokens, *self.added] if self.added else self.tokens

    @cached_property
    def blank(self) -> NDArray[np.bool_]:
        """Mark the terms that are blank nodes; none of those that are added is one."""
        tokens = self.tokens
        if isinstance(tokens, TermColumns):
            of_tokens = tokens.kinds == CODES["blank"]
        else:
            of_tokens = np.array([term.kind == "blank" for term in tokens], bool)
        return np.concatenate([of_tokens, np.zeros(len(self.added), bool)])

    @cached_property
    def nested(self) -> frozenset[int]:
        """Blank nodes within triple terms."""
        triples = [term for term in self.tokens if term.kind == "triple"]
        return frozenset(self.number(unchecked("blank", name)) for name in blank_names(triples))

    def predicates(self) -> dict[int, Term]:
        """Return the predicates by their numbers."""
        return {q: self.term(q) for q in np.unique(self.rows[:, 1]).tolist()}

    def with_predicate(self, *numbers: int) -> NDArray[np.bool_]:
        """Mark the facts that have one of some predicates."""
        return np.isin(self.rows[:, 1], numbers)

    def said_of(self, nodes: Iterable[int]) -> dict[int, list[tuple[int, int]]]:
        """Collect the predicates and objects of each of some subjects."""
        found: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for k, q, v in self.rows[np.isin(self.rows[:, 0], list(nodes))].tolist():
            found[k].append((q, v))
        return found

    def naming(self, nodes: Iterable[int]) -> dict[int, list[int]]:
        """Collect, for each of some objects, the places in `rows` of the facts that name it."""
        found: defaultdict[int, list[int]] = defaultdict(list)
        for at in np.flatnonzero(np.isin(self.rows[:, 2], list(nodes))).tolist():
            found[int(self.rows[at, 2])].append(at)
        return found

    @cached_property
    def type_(self) -> int:
        """The number of ``rdf:type``."""
        return self.iri(RDF_TYPE)

    def rearranged(self, kept: NDArray[np.bool_], made: Sequence[Row]) -> Graph:
        """Keep some of the facts, and add others; a fact that there is twice counts once."""
        rows = np.concatenate([self.rows[kept], np.array(made, np.int64).reshape(-1, 3)])
        return replace(self, rows=np.unique(rows, axis=0) if len(rows) else rows)


def require_few(what: str, n_made: int, n_facts: int) -> None:
    """Refuse a fold that would make many times the facts.

    Raises
    ------
    InvalidArgumentError
        If it would, as for lists of lists that are shared.
    """
    if n_made > max(FREE_MADE, MAX_MADE * n_facts):
        raise InvalidArgumentError(
            f"To fold {what} must not make over {MAX_MADE} times as many facts; of {n_facts:,} it "
            f"would make {n_made:,} or more. Omit it from `fold`."
        )
