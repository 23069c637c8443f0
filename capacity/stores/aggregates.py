"""Counts of facts as aggregates of a table of ids, each of which may spill to the disk.

The three tables of pairs are made one after the other, and dropped when they are counted.
"""

from __future__ import annotations

from capacity.database.terms.term import Term
from capacity.database.terms.vocabularies import RDF_TYPE
from capacity.stores.counts import MOST_CLASSES, PairCounts, PredicateCounts, StoreCounts
from capacity.stores.scratch.keys import (
    BLANK,
    LITERAL,
    TRIPLE_WITH_BLANK,
    key_of,
    number_terms,
    term_of,
)
from capacity.stores.scratch.scratch import Scratch

# 8 steps for each kind of pairs, 3 of numbering, and those at the end
_STEPS = 3 * 5 + 3 + 3 + 2
_BLANK = f"in ({BLANK}, {TRIPLE_WITH_BLANK})"


def count_keyed(db: Scratch, source: str, notes: tuple[str, ...]) -> StoreCounts:
    """Count the facts whose keys are in the table ``keyed`` (s, p, o), which goes.

    Parameters
    ----------
    db : Scratch
        The temporary database.
    source : str
        Name of the file, table or endpoint.
    notes : tuple of str
        What else is to be said.
    """
    db.begin(_STEPS)
    number_terms(db)
    sp, so, po = (_pairs(db, *roles) for roles in ("spo", "sop", "pos"))
    rows = db.step(
        "select key, f.facts, k.n, v.n, k.several, f.literals, f.blanks from (select p, count(*) "
        f"facts, count(*) filter (o % 8 = {LITERAL}) literals, count(*) filter (s % 8 {_BLANK} or "
        f"p % 8 {_BLANK} or o % 8 {_BLANK}) blanks from facts group by p) f "
        "join p_s k on k.x = f.p join p_o v on v.x = f.p join terms on terms.id = f.p"
    )
    found = sorted(
        (PredicateCounts(term_of(key), *numbers) for key, *numbers in rows),
        key=lambda row: (-row.facts, row.predicate),
    )
    # of the slices of each role, the smaller sides; every token of a role is in both tables
    sums = [
        db.step(f"select coalesce(sum(least(a.n, b.n)), 0)::bigint, count(*) from {role}_{one} a "
                f"join {role}_{other} b on a.x = b.x")[0]
        for role, one, other in ("spo", "pso", "ops")
    ]  # fmt: skip
    (subject, subjects), (predicate, predicates), (object_, objects) = sums
    return StoreCounts(
        source=source,
        facts=sum(row.facts for row in found),
        subjects=subjects,
        predicates=predicates,
        objects=objects,
        pairs=sp.pairs,
        multi_valued_pairs=sp.several,
        subject_objects=so.pairs,
        predicate_objects=po.pairs,
        slice_sums=(subject, predicate, object_),
        private=(po.private, so.private, sp.private),
        predicates_rows=tuple(found),
        classes=_classes(db),
        notes=notes,
    )


def _pairs(db: Scratch, a: str, b: str, third: str) -> PairCounts:
    """Count the pairs of two roles, and of each token of one its different tokens of the other."""
    db.step(f"create table pairs as select {a}, {b}, count(*) n, min({third}) one from facts "
            f"group by {a}, {b}")  # fmt: skip
    pairs, several = db.run("select count(*), count(*) filter (n > 1) from pairs")[0]
    ((private,),) = db.step("select count(*) from (select distinct one from pairs where n = 1)")
    for of, other in (a, b), (b, a):
        db.step(f"create table {of}_{other} as select {of} x, count(*) n, count(*) filter (n > 1) "
                f"several from pairs group by {of}")  # fmt: skip
    db.step("drop table pairs")
    return PairCounts(pairs, several, private)


def _classes(db: Scratch) -> tuple[tuple[Term, int], ...]:
    """Count the subjects of each object of ``rdf:type``, those with most first."""
    # of as many, IRIs in their order: their keys end in a character that IRIs don't hold
    rows = db.step(
        "select t.key, c.n from (select o, count(*) n from facts where p = (select id from terms "
        "where key = ?) group by o) c join terms t on t.id = c.o "
        "order by n desc, rtrim(t.key, '>') limit ?",
        [key_of(Term("iri", RDF_TYPE)), MOST_CLASSES],
    )
    return tuple(sorted(((term_of(key), n) for key, n in rows), key=lambda c: (-c[1], c[0])))
