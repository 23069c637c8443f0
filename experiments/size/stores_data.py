"""Real stores, their functional parts of a given number of facts, and controls of the same shape.

Each installs from a package registry under a licence that allows it:

* ``countries``: examples/countries.ttl (GeoNames, CC BY 4.0);
* ``elements``, ``isotopes``: what mendeleev (MIT) says of them in words, names and integers;
* ``subdivisions``: ISO 3166-2 in pycountry (LGPL 2.1): country, type and parent;
* ``wordnet``: facts of 2,500 nouns of WordNet 3.0 (its own licence), wordnet/facts.parquet;
* ``umls``, ``nations``, ``kinships``: the benchmarks in PyKEEN's wheel (MIT), all three splits;
* ``kinship pairs``: Kinships with the second person as predicate and the relation as object, for
  each pair of persons has one relation.

Where a pair has several objects the first in the order of names stands for them (`multi="first"`).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from capacity import Database, load
from capacity.database import uniform_database
from experiments.common.models import folder_of
from experiments.dimension.graphs import COUNTRIES, SPLITS, split_of

Triple = tuple[str, str, str]
STORES = (
    "countries", "elements", "isotopes", "subdivisions", "wordnet", "umls", "nations", "kinships",
    "kinship pairs",
)  # fmt: skip
WORDNET = Path(__file__).with_name("wordnet") / "facts.parquet"
COLUMNS = {
    "elements": (
        "block", "electronic_configuration", "group_id", "period", "series_id", "symbol",
        "lattice_structure", "jmol_color", "cpk_color", "is_monoisotopic", "is_radioactive",
        "geochemical_class", "goldschmidt_class", "discoverers", "discovery_year",
        "discovery_location", "recycling_rate", "substitutability", "mendeleev_number",
    ),
    "isotopes": (
        "atomic_number", "mass_number", "is_radioactive", "half_life_unit", "spin", "parity",
        "discovery_year",
    ),
}  # fmt: skip
KEYS = {"elements": "atomic_number", "isotopes": "id"}
# a part leaves out at least this share of a store, so that parts differ
LEFT_OUT = 1 / 6


@cache
def store(name: str) -> list[Triple]:
    """Facts of a store, one object for each pair, in the order of names."""
    first: dict[tuple[str, str], str] = {}
    for s, q, o in sorted(set(_facts(name))):
        first.setdefault((s, q), o)
    return [(s, q, o) for (s, q), o in first.items()]


def _facts(name: str) -> Iterator[Triple]:
    if name == "countries":
        db = load(COUNTRIES)
        names = [[db.name(term) for term in role] for role in db.roles]
        for s, q, o in db.tuples.tolist():
            yield names[0][s], names[1][q], names[2][o]
    elif name in COLUMNS:
        yield from _columns(name)
    elif name == "subdivisions":
        path = folder_of("pycountry") / "databases" / "iso3166-2.json"
        for each in json.loads(path.read_text(encoding="utf-8"))["3166-2"]:
            country = each["code"].split("-")[0]
            yield each["code"], "country", country
            yield each["code"], "type", each["type"]
            if "parent" in each:
                yield each["code"], "parent", f"{country}-{each['parent']}"
    elif name == "wordnet":
        yield from pd.read_parquet(WORDNET).itertuples(index=False, name=None)
    else:
        by_pair = name == "kinship pairs"
        for split in SPLITS:
            for s, q, o in split_of("kinships" if by_pair else name, split):
                yield (s, f"and {o}", q) if by_pair else (s, q, o)


def _columns(name: str) -> Iterator[Triple]:
    """Cells of a table of mendeleev's, as facts of the rows; an object is told by its column."""
    columns = COLUMNS[name]
    path = folder_of("mendeleev") / "elements.db"
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        rows = connection.execute(f"SELECT {KEYS[name]}, {', '.join(columns)} FROM {name}")
        for key, *cells in rows:
            for column, cell in zip(columns, cells, strict=True):
                if cell is not None:
                    yield f"{name[:-1]} {key}", column, f"{column} {cell}"


def part(name: str, n_triples: int, i: int) -> Database | None:
    """Facts of subjects and predicates drawn at random; None if a store has too few.

    Of a share r of the facts, predicates are a share of r^(3/4) to r^(1/4), so that a part of a
    table has about its proportions; then subjects come in random order until the number is reached,
    and facts of the last are left out at random.
    """
    facts = store(name)
    if n_triples > (1 - LEFT_OUT) * len(facts):
        return None
    rng = np.random.default_rng([28, STORES.index(name), n_triples, i])
    predicates = sorted({q for _, q, _ in facts})
    while True:
        share = (n_triples / len(facts)) ** rng.uniform(0.25, 0.75)
        count = max(2, round(share * len(predicates)))
        of_subject = _by_subject(facts, rng.choice(predicates, count, replace=False).tolist())
        kept: list[Triple] = []
        for s in rng.permutation(sorted(of_subject)).tolist():
            of = of_subject[s]
            kept += [of[j] for j in rng.permutation(len(of))[: n_triples - len(kept)]]
            if len(kept) == n_triples:
                return Database.from_triples(kept, multi="error")


def _by_subject(facts: Iterable[Triple], predicates: Iterable[str]) -> dict[str, list[Triple]]:
    chosen = set(predicates)
    of_subject: dict[str, list[Triple]] = {}
    for fact in facts:
        if fact[1] in chosen:
            of_subject.setdefault(fact[0], []).append(fact)
    return of_subject


def control(db: Database, seed: int) -> Database:
    """A database without structure with the numbers of another, of tokens too."""
    shared = len(np.intersect1d(db.subject_ids, db.object_ids))
    subjects, predicates, objects = db.shape
    return uniform_database(
        seed, subjects=subjects, predicates=predicates, objects=objects, triples=db.n_triples,
        shared=shared,
    )  # fmt: skip


# stores most of whose subjects have nearly all predicates
COMPLETE = ("countries", "isotopes", "kinship pairs")


def with_missing_pairs(
    name: str, missing: float, i: int, *, n_triples: int, n_predicates: int
) -> Database:
    """`n_triples` facts of a store, a share of whose pairs of subject and predicate have none.

    The predicates are drawn at random. All their facts of as many subjects as are needed are taken,
    then all but `n_triples` are dropped at random.
    """
    facts = store(name)
    rng = np.random.default_rng([28, STORES.index(name), round(100 * missing), i])
    predicates = sorted({q for _, q, _ in facts})
    count = min(n_predicates, len(predicates))
    of_subject = _by_subject(facts, rng.choice(predicates, count, replace=False).tolist())
    pool: list[Triple] = []
    for s in rng.permutation(sorted(of_subject)).tolist():
        pool += of_subject[s]
        if (1 - missing) * len(pool) >= n_triples:
            break
    kept = rng.permutation(len(pool))[:n_triples]
    return Database.from_triples([pool[j] for j in kept.tolist()], multi="error")
