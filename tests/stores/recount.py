"""The counts of a database by Python sets, straight from their definitions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from capacity.database import Database
from capacity.database.terms.term import Term
from capacity.database.terms.vocabularies import RDF_TYPE
from capacity.stores import PredicateCounts, StoreCounts

Fact = tuple[Term, Term, Term]


def facts_of(db: Database) -> set[Fact]:
    return {(db.subjects[k], db.predicates[q], db.objects[v]) for k, q, v in db.triples.tolist()}


def recount(source: str, facts: set[Fact], notes: tuple[str, ...] = ()) -> StoreCounts:
    subjects, predicates, objects = (len({fact[mode] for fact in facts}) for mode in range(3))
    values = Counter((k, q) for k, q, _ in facts)
    return StoreCounts(
        source=source,
        facts=len(facts),
        subjects=subjects,
        predicates=predicates,
        objects=objects,
        pairs=len(values),
        multi_valued_pairs=sum(n > 1 for n in values.values()),
        subject_objects=len({(k, v) for k, _, v in facts}),
        predicate_objects=len({(q, v) for _, q, v in facts}),
        slice_sums=(slice_sum(facts, 0), slice_sum(facts, 1), slice_sum(facts, 2)),
        private=(private(facts, 0), private(facts, 1), private(facts, 2)),
        predicates_rows=tuple(sorted(rows(facts), key=lambda row: (-row.facts, row.predicate))),
        classes=classes(facts),
        notes=notes,
    )


def slice_sum(facts: set[Fact], mode: int) -> int:
    """The sum of the smaller sides of the slices of a mode, without empty rows and columns."""
    slices: dict[Term, tuple[set[Term], set[Term]]] = defaultdict(lambda: (set(), set()))
    for fact in facts:
        fixed, others = fact[mode], [fact[other] for other in range(3) if other != mode]
        for side, token in zip(slices[fixed], others, strict=True):
            side.add(token)
    return sum(min(map(len, sides)) for sides in slices.values())


def private(facts: set[Fact], mode: int) -> int:
    """The number of tokens that are the only one of a mode with some pair of the others."""
    tokens: dict[tuple[Term, ...], set[Term]] = defaultdict(set)
    for fact in facts:
        tokens[fact[:mode] + fact[mode + 1 :]].add(fact[mode])
    return len({token for only in tokens.values() if len(only) == 1 for token in only})


def rows(facts: set[Fact]) -> Iterable[PredicateCounts]:
    for predicate in {q for _, q, _ in facts}:
        own = [(k, v) for k, q, v in facts if q == predicate]
        values = Counter(k for k, _ in own)
        yield PredicateCounts(
            predicate=predicate,
            facts=len(own),
            subjects=len(values),
            objects=len({v for _, v in own}),
            multi_valued_pairs=sum(n > 1 for n in values.values()),
            literal_facts=sum(v.kind == "literal" for _, v in own),
            # triple terms in tests hold no blank nodes
            blank_facts=sum("blank" in (k.kind, predicate.kind, v.kind) for k, v in own),
        )


def classes(facts: set[Fact]) -> tuple[tuple[Term, int], ...]:
    found = Counter(v for _, q, v in facts if q == Term("iri", RDF_TYPE))
    return tuple(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))
