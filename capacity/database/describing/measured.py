"""Measures of facts, from which `describe` writes its descriptions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from capacity.database.choosing.hanging import schema_facts
from capacity.database.describing.advice import Advice
from capacity.database.describing.rows import PredicateRow
from capacity.database.terms.term import Term

if TYPE_CHECKING:
    from capacity.database.facts import Database


@dataclass(frozen=True, eq=False, repr=False)
class Measured:
    """Numbers, rows and advice; `Description` explains the attributes, and writes them."""

    db: Database
    slices: tuple[int, ...]
    components: tuple[int, ...]
    predicates: tuple[PredicateRow, ...]
    classes: tuple[tuple[Term, int], ...]
    advice: tuple[Advice, ...]

    @property
    def bound(self) -> int:
        """An upper bound of the rank: the smallest sum of slice ranks."""
        return min(self.slices)

    @cached_property
    def kinds(self) -> dict[str, int]:
        """Numbers of facts that are schema or hang on it, annotations, literals, or hold blanks."""
        return {
            "schema": int(schema_facts(self.db).sum()),
            "annotations": sum(row.facts for row in self.predicates if row.annotation),
            "literals": sum(row.literal_facts for row in self.predicates),
            "blank_nodes": sum(row.blank_facts for row in self.predicates),
        }
