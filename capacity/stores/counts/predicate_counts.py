"""A row for each predicate of a store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from capacity.database.predicate_facts import PredicateFacts
from capacity.database.terms.term import display
from capacity.database.terms.vocabularies import ANNOTATION_PROPERTIES, PREFIXES, is_schema
from capacity.display import briefly_shown


@briefly_shown
@dataclass(frozen=True)
class PredicateCounts(PredicateFacts):
    """The facts of one predicate, in numbers that aggregate queries compute."""

    @property
    def name(self) -> str:
        """Its short name, by the prefixes that files needn't declare."""
        return display(self.predicate, PREFIXES)

    @property
    def schema(self) -> bool:
        """True for ``rdf:type`` and the predicates of RDFS, OWL and SHACL."""
        return is_schema(self.predicate)

    @property
    def annotation(self) -> bool:
        """True if `capacity.database.terms.vocabularies` lists it; not by declarations."""
        return self.predicate.kind == "iri" and self.predicate.text in ANNOTATION_PROPERTIES

    def to_dict(self) -> dict[str, Any]:
        """Return the row for JSON, by the names of `describe`; what isn't computed is omitted."""
        return {
            "predicate": self.predicate.text,
            "name": self.name,
            "facts": self.facts,
            "subjects": self.subjects,
            "objects": self.objects,
            "functional": self.functional,
            "multi_valued_pairs": self.multi_valued_pairs,
            "literal": self.literal,
            "literal_facts": self.literal_facts,
            "blank_facts": self.blank_facts,
            "schema": self.schema,
            "annotation": self.annotation,
        }
