"""A row for each predicate: its facts, its share of the rank, and what it repeats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from capacity.database.choosing.criteria import blank_rows, literal_objects
from capacity.database.describing.repetition import Repetition, repetitions
from capacity.database.policy import pair_starts
from capacity.database.terms.term import Term, display
from capacity.database.terms.vocabularies import (
    annotation_predicates,
    known_prefixes,
    schema_predicates,
)
from capacity.display import briefly_shown
from capacity.exact.ranks import sparse_rank_by_group
from capacity.tensor.coordinates import distinct
from capacity.tensor.structure import stacked_slice_entries

if TYPE_CHECKING:
    from capacity.database.facts import Database


@dataclass(frozen=True)
class PredicateFacts:
    """The facts of one predicate, in numbers.

    Attributes
    ----------
    predicate : Term
        The predicate.
    facts, subjects, objects : int
        Numbers of its facts, and of the different subjects and objects in them.
    multi_valued_pairs : int
        Number of its subjects that have several objects.
    literal_facts, blank_facts : int
        Number of its facts whose object is a literal, and with a blank node in any place.
    """

    predicate: Term
    facts: int
    subjects: int
    objects: int
    multi_valued_pairs: int
    literal_facts: int
    blank_facts: int

    @property
    def functional(self) -> bool:
        """True if each of its subjects has one object."""
        return not self.multi_valued_pairs

    @property
    def literal(self) -> bool:
        """True if all its objects are literals."""
        return self.literal_facts == self.facts


# a predicate is mentioned beside another if it shares a tenth of its pairs
WORTH_SAYING = 0.1


@briefly_shown
@dataclass(frozen=True)
class PredicateRow(PredicateFacts):
    """The facts of one predicate, in numbers: those of `PredicateFacts`, and these.

    Attributes
    ----------
    name : str
        Its short name, for display.
    label : str or None
        Its label in the facts.
    example : tuple of str
        A subject that has several objects, and two of these, by name; empty if there is none.
    rank : int
        Rank of the matrix of its subjects and objects: the number of patterns in them.
    rank_share, facts_share : float
        Its shares of the sum of these ranks over all predicates, and of all facts.
    schema, annotation : bool
        Whether it is one of these (`capacity.database.terms.vocabularies`).
    repeats : Repetition or None
        The other predicate that it shares most (subject, object) pairs with; None if it shares
        none, or if counting would take too long (`repetitions`).
    repeated : str
        Name of that predicate.
    """

    name: str
    label: str | None
    example: tuple[str, ...]
    rank: int
    rank_share: float
    facts_share: float
    schema: bool
    annotation: bool
    repeats: Repetition | None
    repeated: str

    @property
    def identifies(self) -> bool:
        """True if each of several subjects has one object, and each object one subject."""
        return 1 < self.facts == self.subjects == self.objects

    def in_words(self) -> str:
        """Describe what it repeats of another predicate; empty if that is little."""
        found = self.repeats
        if found is None or found.facts < WORTH_SAYING * self.facts:
            return ""
        of = f"the inverse of {self.repeated}" if found.inverse else self.repeated
        if found.by == "equal":
            return f"is {of}" if found.inverse else f"equals {of}"
        return (
            f"lies within {of}" if found.by == "contained" else f"shares {found.facts:,} with {of}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the row for JSON, with the predicate as an IRI or label."""
        repeats = None
        if (found := self.repeats) is not None:
            repeats = {
                "predicate": self.repeated,
                "inverse": found.inverse,
                "facts": found.facts,
                "by": found.by,
            }
        return {
            "predicate": self.predicate.text,
            "name": self.name,
            "label": self.label,
            "facts": self.facts,
            "subjects": self.subjects,
            "objects": self.objects,
            "functional": self.functional,
            "multi_valued_pairs": self.multi_valued_pairs,
            "example": list(self.example),
            "rank": self.rank,
            "rank_share": self.rank_share,
            "facts_share": self.facts_share,
            "literal": self.literal,
            "literal_facts": self.literal_facts,
            "blank_facts": self.blank_facts,
            "schema": self.schema,
            "annotation": self.annotation,
            "repeats": repeats,
        }


def predicate_rows(db: Database) -> tuple[PredicateRow, ...]:
    """Describe each predicate, those of the largest rank first.

    Parameters
    ----------
    db : Database
        Facts of arity 3, at least one.

    Returns
    -------
    tuple of PredicateRow
        A row for each predicate; of equal ranks, that with more facts first.

    Raises
    ------
    MemoryBudgetError
        If an exact rank needs a dense block over its budget.
    """
    n, (subject, predicate, object_) = len(db.predicates), db.triples.T
    tensor = db.tensor()
    ranks = sparse_rank_by_group(*stacked_slice_entries(tensor, (1,)), tensor.values)
    total, facts = int(ranks.sum()), _counts(predicate, n)
    schema, annotation = schema_predicates(db), annotation_predicates(db)
    literals = _counts(predicate[literal_objects(db)[object_]], n)
    blanks = _counts(predicate[blank_rows(db)], n)
    subjects = _counts(_distinct(predicate, subject), n)
    objects = _counts(_distinct(predicate, object_), n)
    several, examples = _multi_valued(db)
    shared = repetitions(db)
    prefixes = known_prefixes(db)
    names = [display(term, prefixes) for term in db.predicates]
    rows: list[PredicateRow] = []
    for q, term in enumerate(db.predicates):
        other = shared[q] if shared is not None else None
        row = PredicateRow(
            predicate=term,
            name=names[q],
            label=next(iter(db.labels.get(term, ())), None),
            facts=facts[q],
            subjects=subjects[q],
            objects=objects[q],
            multi_valued_pairs=several[q],
            example=examples.get(q, ()),
            rank=int(ranks[q]),
            rank_share=int(ranks[q]) / total,
            facts_share=facts[q] / db.n_facts,
            literal_facts=literals[q],
            blank_facts=blanks[q],
            schema=bool(schema[q]),
            annotation=bool(annotation[q]),
            repeats=other,
            repeated="" if other is None else names[other.predicate],
        )
        rows.append(row)
    return tuple(sorted(rows, key=lambda row: (-row.rank, -row.facts, row.name)))


def _counts(numbers: NDArray[Any], n: int) -> list[int]:
    return np.bincount(numbers, minlength=n).tolist()


def _distinct(predicate: NDArray[np.int32], other: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the predicate of each different (predicate, other) pair."""
    side = np.int64(other.max(initial=0) + 1)
    return distinct(predicate * side + other) // side


def _multi_valued(db: Database) -> tuple[list[int], dict[int, tuple[str, ...]]]:
    """Count the pairs of each predicate that have several objects, with an example of each."""
    starts = pair_starts(db.triples)
    sizes = np.diff(np.append(starts, db.n_facts))
    several = starts[sizes > 1]
    predicate = db.triples[several, 1]
    examples: dict[int, tuple[str, ...]] = {}
    for q, first in zip(*np.unique(predicate, return_index=True), strict=True):
        row = int(several[first])
        (k, _, v), (_, _, w) = db.triples[row : row + 2].tolist()
        terms = db.subjects[k], db.objects[v], db.objects[w]
        names = tuple(db.name(term) for term in terms)
        # two texts can differ in their language or datatype alone
        examples[int(q)] = names if names[1] != names[2] else (names[0], *map(str, terms[1:]))
    return _counts(predicate, len(db.predicates)), examples
