"""The facts of one predicate in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from capacity.database.terms.term import Term

# columns that a table of predicates can be sorted by
Sorting: TypeAlias = Literal["rank", "facts", "subjects", "objects", "several", "name"]


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
