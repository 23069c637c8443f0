"""Verifying a large certificate, and a bisection for the size that a layer memorises."""

from __future__ import annotations

from functools import cache

import numpy as np

from capacity import AttentionLayer, Database, LayerConfig, Recipe
from capacity.database import random_database
from capacity.evaluator import evaluate, half_size
from capacity.layer import train_many
from capacity.rank import RankInterval, rank_interval, verify
from capacity.rank.verifier.budget import CheckBudget
from headlines.figure import Figure, ratio

FACTS, SUBJECTS, PREDICATES, OBJECTS = 100_000, 5_000, 25, 5_000
SIZES, STARTS = tuple(range(4, 68, 4)), 8
LAYER = LayerConfig(d_model=4, n_heads=1, d_head_qk=2, d_head_vo=2)
RECIPE = Recipe(epochs=2_000, stop_tau=0)


@cache
def large() -> tuple[Database, RankInterval]:
    """A random database, and both ends of its rank."""
    rng = np.random.default_rng(0)
    pairs = rng.choice(SUBJECTS * PREDICATES, FACTS, replace=False)
    facts = zip(pairs.tolist(), rng.integers(0, OBJECTS, FACTS).tolist(), strict=True)
    db = Database.from_triples(
        (f"s{pair // PREDICATES}", f"p{pair % PREDICATES}", f"o{v}") for pair, v in facts
    )
    return db, rank_interval(db)


def verifying() -> float:
    """Seconds of checking them, in units of sorting the facts."""
    db, interval = large()

    def check() -> None:
        assert verify(interval, db).proved

    return ratio(check, lambda: np.lexsort(db.triples.T), repeats=5)


def steps_of_verifying() -> float:
    """Steps of the budget a fact."""
    db, interval = large()
    budget = CheckBudget.of(db.n_facts)
    before = budget.steps
    assert verify(interval, db, budget=budget).proved
    return (before - budget.steps) / db.n_facts


def memorised(size: int) -> float:
    """Share of starts at which the layer memorises a database of that many facts."""
    db = random_database(size, triples=(size, size))
    layers = [AttentionLayer(LAYER, db.n_tokens, seed=seed) for seed in range(STARTS)]
    train_many([(layer, db) for layer in layers], RECIPE)
    return float(np.mean([evaluate(layer, db).argmax == 1 for layer in layers]))


def bisecting() -> float:
    """Seconds of a bisection of 16 sizes, in units of training at four of them alone."""

    def train() -> None:
        for size in SIZES[1::4]:
            db = random_database(size, triples=(size, size))
            layers = [AttentionLayer(LAYER, db.n_tokens, seed=seed) for seed in range(STARTS)]
            train_many([(layer, db) for layer in layers], RECIPE)

    return ratio(lambda: half_size(memorised, SIZES), train, repeats=3)


FIGURES = {
    "verifying": Figure("ratio", "a sort of the facts", verifying),
    "steps of verifying": Figure("count", "steps of the budget, a fact", steps_of_verifying),
    "bisection": Figure("ratio", "training at four sizes", bisecting),
}
