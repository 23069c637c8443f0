"""Counts of facts that aggregate queries compute, and what they prove of the rank.

For the tensor D of a database (Wong 2025, equation (1)), let Q_k and V_k be the predicates and the
objects in the facts of a subject k, and so on for the other roles.

* *From above.* D is the sum of its subject slices, and the rank of a matrix is at most its smaller
  side without empty rows and columns. So rank(D) <= sum_k min(|Q_k|, |V_k|), and the same for
  predicate and object slices. None of these sums is larger than the paper's count, min(sum_k
  |V_k|, sum_q |V_q|) (Proposition 2.1), nor than the number of facts.
* *From below.* Call a subject *private* if it is the only subject of some (predicate, object)
  pair, and choose such a pair for each private subject. In the unfolding whose rows are subjects,
  the chosen columns have a single entry each, in rows that differ: they are linearly independent,
  so that rank(D) is at least their number. The same holds for predicates and objects. In a
  functional database every object is private: it is the only one of its (subject, predicate) pairs.

Facts are a set: what a store holds twice counts once.

References
----------
L. Z. Wong, Paying Attention to Facts, 2025, arXiv 2502.05076, Proposition 2.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from capacity.checks import cut
from capacity.database.describing.rows import PredicateFacts
from capacity.database.terms.term import Term, display
from capacity.database.terms.vocabularies import ANNOTATION_PROPERTIES, PREFIXES, is_schema
from capacity.display import aligned, briefly_shown, percent
from capacity.visible import visible

ROLES = ("subject", "predicate", "object")
# classes that counts list; a large store may have millions
MOST_CLASSES = 1000
_HEAD = ("predicate", "facts", "subjects", "objects", "several objects", "of facts", "kind")
# columns of numbers
_NUMBERS = range(1, 6)


@dataclass(frozen=True)
class PairCounts:
    """Numbers of the different pairs of two roles.

    Attributes
    ----------
    pairs, several : int
        Number of pairs, and of those that have several tokens of the third role.
    private : int
        Number of tokens of the third role that are the only one of a pair.
    """

    pairs: int
    several: int
    private: int


@dataclass(frozen=True, repr=False)
class StoreCounts:
    """Numbers of a set of facts, of arity 3, and the bounds of the rank that they prove.

    The module's docstring has the proofs.

    Attributes
    ----------
    source : str
        Name of the file, table or endpoint.
    facts, subjects, predicates, objects : int
        Numbers of different facts, and of different tokens in each role.
    pairs : int
        Number of different (subject, predicate) pairs.
    multi_valued_pairs : int
        Number of these that have several objects.
    subject_objects, predicate_objects : int
        Numbers of different (subject, object) and (predicate, object) pairs, Proposition 2.1's two
        sums.
    slice_sums : tuple of int
        For subject, predicate and object slices the sum of their smaller sides.
    private : tuple of int
        Numbers of subjects, of predicates and of objects that are the only one of their role with
        some pair of tokens of the other two.
    predicates_rows : tuple of PredicateCounts
        A row for each predicate, those with most facts first; of as many, in the order of terms.
    classes : tuple of (Term, int)
        The objects of ``rdf:type``, and how many subjects have each, in the same order; at most
        `MOST_CLASSES` of them.
    notes : tuple of str
        Further remarks on the facts.

    Examples
    --------
    >>> row = PredicateCounts(Term("iri", "x:in"), 2, 2, 1, 0, 0, 0)
    >>> found = StoreCounts("towns.nt", facts=2, subjects=2, predicates=1, objects=1, pairs=2,
    ...     multi_valued_pairs=0, subject_objects=2, predicate_objects=1, slice_sums=(2, 1, 1),
    ...     private=(0, 0, 1), predicates_rows=(row,), classes=(), notes=())
    >>> found
    StoreCounts(towns.nt: 2 facts, 2 x 1 x 1; functional; rank in [1, 1])
    >>> found.lower_by
    'private objects'
    """

    source: str
    facts: int
    subjects: int
    predicates: int
    objects: int
    pairs: int
    multi_valued_pairs: int
    subject_objects: int
    predicate_objects: int
    slice_sums: tuple[int, int, int]
    private: tuple[int, int, int]
    predicates_rows: tuple[PredicateCounts, ...]
    classes: tuple[tuple[Term, int], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def functional(self) -> bool:
        """True if every (subject, predicate) pair has one object."""
        return not self.multi_valued_pairs

    @property
    def paper(self) -> int:
        """Upper bound as the paper counts it, min(sum_k |V_k|, sum_q |V_q|)."""
        return min(self.subject_objects, self.predicate_objects)

    @property
    def upper(self) -> int:
        """An upper bound of the rank, the smallest that the counts prove."""
        return self._upper[0]

    @property
    def upper_by(self) -> str:
        """The count that proves `upper`."""
        return self._upper[1]

    @property
    def lower(self) -> int:
        """A lower bound of the rank, the largest that the counts prove; 1 if there is a fact."""
        return self._lower[0]

    @property
    def lower_by(self) -> str:
        """The count that proves `lower`."""
        return self._lower[1]

    @property
    def _upper(self) -> tuple[int, str]:
        sums = zip(self.slice_sums, ROLES, strict=True)
        named = [*((n, f"{role} slices' smaller sides") for n, role in sums), (self.facts, "facts")]
        return min(named, key=lambda pair: pair[0])

    @property
    def _lower(self) -> tuple[int, str]:
        named = [(n, f"private {role}s") for n, role in zip(self.private, ROLES, strict=True)]
        return max([*reversed(named), (min(self.facts, 1), "facts")], key=lambda pair: pair[0])

    @property
    def reasons(self) -> tuple[str, str]:
        """Sentences' ends that name the count that proves each end of the interval."""
        lower, upper = self.lower_by, self.upper_by
        below = "there is a fact, so that the rank isn't 0"
        if lower != "facts":
            role = lower.removeprefix("private ").removesuffix("s")
            others = " and ".join(other for other in ROLES if other != role)
            below = (
                f"as many {role}s are the only {role} of some pair of {others}, and the columns of "
                "these pairs are independent"
            )
        above = "the number of facts"
        if upper != "facts":
            role = upper.partition(" ")[0]
            others = " or ".join(f"{other}s" for other in ROLES if other != role)
            above = f"the sum over {role}s of the number of their {others}, whichever is smaller"
        return below, above

    @property
    def explanation(self) -> tuple[str, str]:
        """Sentences that name the count that proves each end of the interval."""
        below, above = self.reasons
        return f"lower bound {self.lower:,}: {below}", f"upper bound {self.upper:,}: {above}"

    @property
    def kinds(self) -> dict[str, int]:
        """Numbers of facts that are schema, annotations, literals, or hold blank nodes."""
        rows = self.predicates_rows
        return {
            "schema": sum(row.facts for row in rows if row.schema),
            "annotations": sum(row.facts for row in rows if row.annotation),
            "literals": sum(row.literal_facts for row in rows),
            "blank_nodes": sum(row.blank_facts for row in rows),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return all counts and bounds for JSON, by the names of `capacity rank` and `describe`."""
        return {
            "source": self.source,
            "triples": self.facts,
            "subjects": self.subjects,
            "predicates": [row.to_dict() for row in self.predicates_rows],
            "n_predicates": self.predicates,
            "objects": self.objects,
            "pairs": self.pairs,
            "functional": self.functional,
            "multi_valued_pairs": self.multi_valued_pairs,
            **{f"{kind}_facts": n for kind, n in self.kinds.items()},
            "bounds": self.bounds(),
            "rank": self.rank(),
            "classes": [{"class": term.text, "subjects": n} for term, n in self.classes],
            "notes": list(self.notes),
        }

    def bounds(self) -> dict[str, Any]:
        """Return each bound for JSON; a private token of a role is of one's own."""
        sides = zip(ROLES, self.slice_sums, strict=True)
        private = zip(ROLES, self.private, strict=True)
        return {
            "triples": self.facts,
            **{f"{role}_sides": n for role, n in sides},
            "paper": self.paper,
            **{f"private_{role}s": n for role, n in private},
        }

    def rank(self) -> dict[str, Any]:
        """Return the interval of the rank for JSON."""
        return {
            "lower": self.lower,
            "upper": self.upper,
            "closed": self.lower == self.upper,
            "lower_by": self.lower_by,
            "upper_by": self.upper_by,
        }

    def __repr__(self) -> str:
        many = f"{self.multi_valued_pairs:,} multi-valued pairs"
        return (
            f"StoreCounts({cut(self.source)}: {self.facts:,} facts, {self.subjects:,} x "
            f"{self.predicates:,} x {self.objects:,}; {'functional' if self.functional else many}; "
            f"rank in [{self.lower:,}, {self.upper:,}])"
        )

    def __str__(self) -> str:
        cells = [_HEAD, *(self._cells(row) for row in self.predicates_rows)]
        return "\n".join([*self._numbers(), "", *aligned(cells, _NUMBERS)])

    def _numbers(self) -> Sequence[str]:
        kinds = ", ".join(
            f"{kind.replace('_', ' ')} {n:,} ({percent(n / max(1, self.facts))})"
            for kind, n in self.kinds.items()
        )
        return [
            repr(self),
            f"  facts       {kinds}",
            f"  paper       {self.paper:,}, min(sum_k |V_k|, sum_q |V_q|), Prop. 2.1",
            f"  rank        [{self.lower:,}, {self.upper:,}]",
            *(f"    {visible(line)}" for line in self.explanation),
            *(f"  note        {visible(note)}" for note in self.notes),
        ]

    def _cells(self, row: PredicateCounts) -> tuple[str, ...]:
        kinds = (
            ("schema", row.schema),
            ("annotation", row.annotation),
            ("literals", row.literal),
        )
        return (
            cut(row.name),
            f"{row.facts:,}",
            f"{row.subjects:,}",
            f"{row.objects:,}",
            f"{row.multi_valued_pairs:,}" if row.multi_valued_pairs else "",
            percent(row.facts / self.facts),
            ", ".join(kind for kind, is_so in kinds if is_so),
        )


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
