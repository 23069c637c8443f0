"""Counts of facts as functions of Dask's dataframe, on ids of terms.

An id has 60 bits of a hash. That no two terms share one is checked, so that counts of ids are
counts of terms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import Any

from capacity.database.terms.term import Term
from capacity.database.terms.vocabularies import RDF_TYPE
from capacity.progress import Progress
from capacity.stores.cluster.parquet_parts import (
    KINDS,
    Part,
    facts_of,
    ids_of,
    named_facts,
    named_terms,
    terms_of,
)
from capacity.stores.counts import MOST_CLASSES, PairCounts, PredicateCounts, StoreCounts
from capacity.stores.scratch.keys import BLANK, LITERAL, TRIPLE_WITH_BLANK, key_of, term_of

# of 10^8 terms two share a hash of 60 bits in one of two hundred sets
_ATTEMPTS = 4
_STEPS = 18


@dataclass
class Cluster:
    """Functions of dataframes on the workers of a client, and how far the work is."""

    client: Any
    progress: Progress | None
    done: int = 0

    def run(self, *lazy: Any) -> list[Any]:
        """Compute values in one step."""
        futures = self.client.compute(list(lazy))
        found = self.client.gather(futures)
        self._tell()
        return found

    def keep(self, frame: Any) -> Any:
        """Compute a dataframe, and keep it on the workers."""
        from distributed import wait

        with self.client.as_current():
            held = self.client.persist(frame)
            wait(held)
        self._tell()
        return held

    def map(self, function: Callable[..., Any], items: Sequence[Any]) -> list[Any]:
        """Call a function for each item."""
        found = self.client.gather(self.client.map(function, items, pure=False))
        self._tell()
        return found

    def _tell(self) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress("steps of counting", self.done, max(_STEPS, self.done), None)


def count_parts(
    cluster: Cluster, parts: Sequence[Part], forms: list[str], source: str, notes: tuple[str, ...]
) -> StoreCounts:
    """Count the facts of parts of files, whose cells have some forms."""
    facts, terms, salt = _numbered(cluster, parts, forms)
    sp, so, po = (_Pairs.count(cluster, facts, *roles) for roles in ("spo", "sop", "pos"))
    sums = cluster.run(*(
        one[role][["n"]].reset_index().merge(other[role][["n"]].reset_index(), on=role)
        [["n_x", "n_y"]].min(axis=1).sum()
        for role, one, other in (("s", sp.of, so.of), ("p", sp.of, po.of), ("o", so.of, po.of))
    ))  # fmt: skip
    literal, blank = facts.o % KINDS == LITERAL, _any_blank(facts)
    by_predicate = cluster.run(
        facts.groupby("p").size(),
        sp.of["p"],
        po.of["p"].n,
        facts[literal].groupby("p").size(),
        facts[blank].groupby("p").size(),
    )
    rows = _rows(cluster, terms, *by_predicate)
    subjects, objects = cluster.run(sp.of["s"].n.size, po.of["o"].n.size)
    return StoreCounts(
        source=source,
        facts=sum(row.facts for row in rows),
        subjects=int(subjects),
        predicates=len(rows),
        objects=int(objects),
        pairs=sp.pairs,
        multi_valued_pairs=sp.several,
        subject_objects=so.pairs,
        predicate_objects=po.pairs,
        slice_sums=(int(sums[0]), int(sums[1]), int(sums[2])),
        private=(po.private, so.private, sp.private),
        predicates_rows=rows,
        classes=_classes(cluster, facts, terms, salt),
        notes=notes,
    )


def _numbered(cluster: Cluster, parts: Sequence[Part], forms: list[str]) -> tuple[Any, Any, str]:
    """Make the dataframes of facts (s, p, o) and of terms (id, key), each once; and their salt."""
    import dask.dataframe as dd

    n = len(parts)
    for _ in range(_ATTEMPTS):
        salt = token_hex(8)
        facts = dd.from_map(
            facts_of, parts, forms, salt=salt, meta=named_facts([ids_of([], salt)] * 3)
        )
        terms = dd.from_map(terms_of, parts, forms, salt=salt, meta=named_terms([], salt))
        facts, terms = (frame.drop_duplicates(split_out=n) for frame in (facts, terms))
        terms = cluster.keep(terms)
        alike = terms.groupby("id").size(split_out=n).max()
        if cluster.run(alike)[0] == 1:
            return cluster.keep(facts), terms, salt
    raise RuntimeError("hashes of 60 bits collide again and again")


@dataclass(frozen=True)
class _Pairs(PairCounts):
    """Numbers of the different pairs of two roles, also of each token.

    Attributes
    ----------
    of : mapping of str to dataframe
        Of each token of the two roles the number ``n`` of its tokens of the other, and that of its
        pairs which have several of the third, ``several``.
    """

    of: Mapping[str, Any]

    @classmethod
    def count(cls, cluster: Cluster, facts: Any, a: str, b: str, third: str) -> _Pairs:
        """Count the pairs of two roles."""
        n = facts.npartitions
        pairs = facts.groupby([a, b], sort=False).agg({third: ["count", "min"]}, split_out=n)
        pairs.columns = ["n", "one"]
        pairs = pairs.reset_index()
        pairs["several"] = (pairs.n > 1).astype("int64")
        pairs = cluster.keep(pairs)
        only = pairs[pairs.n == 1].one.drop_duplicates(split_out=n)
        total, several, private = cluster.run(pairs.several.size, pairs.several.sum(), only.size)
        of: dict[str, Any] = {}
        for role in (a, b):
            each = pairs.groupby(role, sort=False).agg({"several": ["count", "sum"]}, split_out=n)
            each.columns = ["n", "several"]
            of[role] = cluster.keep(each)
        return cls(int(total), int(several), int(private), of)


def _any_blank(facts: Any) -> Any:
    s, p, o = ((facts[role] % KINDS).isin([BLANK, TRIPLE_WITH_BLANK]) for role in "spo")
    return s | p | o


def _named(cluster: Cluster, terms: Any, ids: Iterable[int]) -> dict[int, str]:
    """Ask for the keys of some ids."""
    (found,) = cluster.run(terms[terms.id.isin(list(ids))])
    return dict(zip(found.id.tolist(), found.key.tolist(), strict=True))


def _rows(
    cluster: Cluster, terms: Any, facts: Any, subjects: Any, objects: Any, literal: Any, blank: Any
) -> tuple[PredicateCounts, ...]:
    """Make a row for each predicate, those with most facts first."""
    keys = _named(cluster, terms, facts.index.tolist())
    found = [
        PredicateCounts(
            term_of(keys[p]),
            int(n),
            int(subjects.n[p]),
            int(objects[p]),
            int(subjects.several[p]),
            int(literal.get(p, 0)),
            int(blank.get(p, 0)),
        )
        for p, n in facts.items()
    ]
    return tuple(sorted(found, key=lambda row: (-row.facts, row.predicate)))


def _classes(cluster: Cluster, facts: Any, terms: Any, salt: str) -> tuple[tuple[Term, int], ...]:
    """Count the subjects of each object of ``rdf:type``, those with most first."""
    (kind,) = ids_of([key_of(Term("iri", RDF_TYPE))], salt)
    (sizes,) = cluster.run(facts[facts.p == kind].groupby("o").size())
    # of as many, IRIs in their order: all that may be among the first must be named
    enough = sizes.nlargest(MOST_CLASSES).min() if len(sizes) else 0
    first = sizes[sizes >= enough]
    keys = _named(cluster, terms, first.index.tolist())
    # keys of IRIs end in a character that IRIs don't hold
    named = sorted(
        ((keys[o], int(n)) for o, n in first.items()), key=lambda c: (-c[1], c[0].rstrip(">"))
    )
    found = [(term_of(key), n) for key, n in named[:MOST_CLASSES]]
    return tuple(sorted(found, key=lambda c: (-c[1], c[0])))
