"""The graphs of the experiments on dimensions: benchmarks, their shuffles, a table, random ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from capacity import Database, load
from experiments.common.models import folder_of

Triple = tuple[str, str, str]
# the small benchmarks that PyKEEN's wheel has: Nations, Kinships and UMLS (Kok, Domingos 2007)
BENCHMARKS = ("nations", "kinships", "umls")
SPLITS = ("train", "valid", "test")
COUNTRIES = Path(__file__).parents[2] / "examples" / "countries.ttl"
N_COUNTRIES = 40
N_RANDOM = 20


def split_of(name: str, split: str) -> list[Triple]:
    """The triples of a split of a benchmark."""
    lines = (folder_of("pykeen") / "datasets" / name / f"{split}.txt").read_text().splitlines()
    return [(s, q, o) for s, q, o in (line.split("\t") for line in lines)]


def database(name: str) -> Database:
    """The training triples of a benchmark."""
    return Database.from_triples(split_of(name, "train"), multi="keep")


def countries() -> Database:
    """The facts of the first countries of the examples, whose pairs have one object each."""
    db = load(COUNTRIES)
    s_of, q_of, o_of = ([db.name(db.tokens[i]) for i in ids] for ids in db.role_ids)
    rows = db.triples[db.triples[:, 0] < N_COUNTRIES].tolist()
    return Database.from_triples([(s_of[s], q_of[q], o_of[o]) for s, q, o in rows])


def shuffled(db: Database, seed: int) -> Database:
    """A graph with the same queries, each with as many answers, drawn among all objects."""
    rng = np.random.default_rng(seed)
    queries, counts = np.unique(db.triples[:, :2], axis=0, return_counts=True)
    s_of, q_of, o_of = ([db.name(db.tokens[i]) for i in ids] for ids in db.role_ids)
    rows = [
        (s_of[s], q_of[q], o_of[o])
        for (s, q), n in zip(queries.tolist(), counts.tolist(), strict=True)
        for o in rng.permutation(len(o_of))[:n]
    ]
    return Database.from_triples(rows, multi="keep")


def random_graph(number: int) -> Database:
    """One of twenty random graphs, drawn from their numbers alone before anything was run.

    Every fourth has objects of unequal frequency, as Zipf's law has them. Subjects and objects are
    different entities.
    """
    rng = np.random.default_rng((27, number))
    k, q = int(rng.choice([20, 40, 60])), int(rng.choice([4, 8, 16, 24]))
    v, c = int(rng.choice([10, 20, 40, 60])), int(rng.choice([1, 1, 2, 4]))
    weights = 1 / np.arange(1, v + 1) if number % 4 == 3 else np.ones(v)
    rows = [
        (f"s{s}", f"q{r}", f"o{o}")
        for s in range(k)
        for r in range(q)
        if rng.random() < 0.9
        for o in rng.choice(
            v, int(rng.integers(1, c + 1)), replace=False, p=weights / weights.sum()
        )
    ]
    return Database.from_triples(rows, multi="keep")


def names() -> Iterator[str]:
    """The names of all graphs."""
    yield from BENCHMARKS
    yield from (f"{name} shuffled" for name in (*BENCHMARKS, "countries"))
    yield "countries"
    yield from (f"random {number}" for number in range(N_RANDOM))


def graph(name: str, seed: int) -> Database:
    """A graph by its name; shuffles differ by seed."""
    kind, _, rest = name.partition(" ")
    if kind == "random":
        return random_graph(int(rest))
    db = countries() if kind == "countries" else database(kind)
    return shuffled(db, seed) if rest else db
