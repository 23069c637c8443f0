"""Databases with facts held out, for the experiment on completion.

Facts to hold out are drawn one after the other, and stay if their subject, predicate or object has
no other fact in its role: what a layer was never taught as an object it can't complete to, and such
a fact would add one to the effective rank for that reason alone. The smaller share that is held out
is part of the larger one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capacity import Database, effective_rank_interval
from capacity.database import (
    description_length,
    object_entropy,
    random_database,
    structured_database,
)
from capacity.evaluator import nonsense_pairs, with_unknown
from capacity.rank import paper_bound

SHARES = (0.1, 0.3)
# share of the pairs that have no fact, in training or test, that "unknown" is taught for; and how
# many of them there must be
UNKNOWN_SHARE, LEAST_UNKNOWN = 0.5, 20
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Cell:
    """Databases of one kind: their structure, and the share of their pairs that have a fact."""

    block: str
    structure: str
    copies: float
    density: float
    count: int
    sizes: tuple[int, int, int] | None = None
    own_objects: bool = False

    @property
    def name(self) -> str:
        """Name in the tables."""
        return f"{self.block}, {self.structure} {self.copies:g}, density {self.density:g}"


def _shared(density: float) -> tuple[int, int, int]:
    # 96 facts at either density
    return (12, 8, 6) if density == 1 else (16, 12, 6)


CELLS = [
    Cell("paper", "random", 0.0, 0.0, 105),
    *(Cell("shared", kind, copies, density, 13, _shared(density))
      for density in (1.0, 0.5)
      for kind, copies in (("same", 0.0), *((kind, copies)
                           for kind in ("same", "relabelled", "classes", "pairs")
                           for copies in (0.5, 1.0)))),
    *(Cell("tables", kind, copies, density, 12, (side, side, side))
      for density, side in ((1.0, 10), (0.5, 14))
      for kind, copies in (("group", 0.0), ("group", 1.0), ("latin", 1.0))),
    *(Cell("own objects", "relabelled", copies, density, 15, sizes, own_objects=True)
      for density, sizes in ((1.0, (12, 8, 48)), (0.5, (16, 12, 48)))
      for copies in (0.0, 0.5, 1.0)),
    *(Cell("small", kind, copies, 1.0, 20, (8, 6, 2))
      for kind, copies in (("same", 0.0), *((kind, copies)
                           for kind in ("same", "relabelled", "classes", "pairs")
                           for copies in (0.5, 1.0)))),
]  # fmt: skip


def database_of(number: int, i: int) -> Database:
    """All facts of a database of the cell of that number, those to be held out among them."""
    cell, seed = CELLS[number], np.random.default_rng([29, number, i])
    if cell.sizes is None:
        return random_database(seed, triples=(60, 200))
    subjects, predicates, objects = cell.sizes
    whole = structured_database(
        seed,
        cell.structure,  # type: ignore[arg-type]
        cell.copies,
        subjects=subjects,
        predicates=predicates,
        objects=objects,
        own_objects=cell.own_objects,
    )
    # the rest of the pairs stay without a fact
    dropped = removable(whole, round((1 - cell.density) * whole.n_triples), seed)
    return Database.from_ids(whole.tokens, whole.token_triples[~dropped], multi="error")


def removable(db: Database, n: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """At most n facts whose tokens each keep another fact in their role, drawn in random order."""
    return np.isin(np.arange(db.n_triples), removal_order(db, rng)[:n])


def removal_order(db: Database, rng: np.random.Generator) -> NDArray[np.int64]:
    """Indices of facts that can be removed one after the other, in that order."""
    left = [np.bincount(column) for column in db.triples.T]
    order: list[int] = []
    for i in rng.permutation(db.n_triples).tolist():
        roles = db.triples[i]
        if all(left[mode][role] > 1 for mode, role in enumerate(roles)):
            for mode, role in enumerate(roles):
                left[mode][role] -= 1
            order.append(i)
    return np.array(order, dtype=np.int64)


@dataclass(frozen=True)
class Split:
    """Facts that are taught, facts that are held out, and pairs that have none, by token ids.

    The ids of `test` and of `nothing` are those of `train`, and `nothing` has no pair that is
    taught as unknown.
    """

    train: Database
    test: NDArray[np.int64]
    nothing: NDArray[np.int64]


def split_of(db: Database, held_out: NDArray[np.integer], *, unknown: bool, seed: int) -> Split:
    """Take facts out of a database, and teach that half of the empty pairs are unknown if asked."""
    test = db.token_triples[held_out]
    taught = with_unknown(db, UNKNOWN_SHARE, token=UNKNOWN, seed=seed) if unknown else db
    # ids of a database are those of its own tokens
    ids = {term: i for i, term in enumerate(taught.tokens)}
    renamed = np.array([ids[term] for term in db.tokens])[test].astype(np.int64)
    gone = {tuple(row) for row in renamed.tolist()}
    rows = taught.token_triples
    kept = np.array([tuple(row) not in gone for row in rows.tolist()])
    train = Database.from_ids(taught.tokens, rows[kept], multi="error")
    return Split(train, renamed, nonsense_pairs(taught))


def can_be_unknown(db: Database) -> bool:
    """Whether enough pairs have no fact for "unknown" to be taught and asked."""
    return len(nonsense_pairs(db)) >= LEAST_UNKNOWN


def held_out_of(db: Database, number: int, i: int) -> dict[float, NDArray[np.int64]]:
    """The facts of a database that are held out, by their share; fewer if no more can be."""
    order = removal_order(db, np.random.default_rng([30, number, i]))
    return {share: order[: max(1, round(share * db.n_triples))] for share in SHARES}


def measures_of(
    db: Database, held_out: dict[float, NDArray[np.int64]], effort: str
) -> list[dict[str, Any]]:
    """Measures of the facts that are taught and held out, a row for each share.

    A tensor that represents all facts represents any part of them, so that the effective rank of a
    part is at most that of the whole; intervals are narrowed by it.
    """
    everything = np.arange(db.n_triples)
    parts = [db] + [
        Database.from_ids(db.tokens, db.token_triples[np.setdiff1d(everything, held_out[share])])
        for share in sorted(SHARES)
    ]
    found = [_ends(part, effort) for part in parts]
    lower = np.maximum.accumulate([low for low, _ in found][::-1])[::-1]
    upper = np.minimum.accumulate([high for _, high in found])
    whole_bits = description_length(db).bits
    rows: list[dict[str, Any]] = []
    for i, share in enumerate(sorted(SHARES), 1):
        part, test = parts[i], db.triples[held_out[share]]
        rows.append({
            "held_out": share, "n_train": part.n_triples, "n_test": len(test),
            "n_pairs": db.shape[0] * db.shape[1], "n_tokens": db.n_tokens,
            "n_objects": db.shape[2],
            "train_lower": int(lower[i]), "train_upper": int(upper[i]),
            "all_lower": int(lower[0]), "all_upper": int(upper[0]),
            "train_bound": paper_bound(part), "all_bound": paper_bound(db),
            "bits_train": description_length(part).bits, "bits_all": whole_bits,
            "entropy_train": object_entropy(part),
            "chance": _chance(part, test),
        })  # fmt: skip
    return rows


def _ends(db: Database, effort: str) -> tuple[int, int]:
    if effort == "none":
        found = effective_rank_interval(db, methods=())
    else:
        found = effective_rank_interval(db, effort=effort)  # type: ignore[arg-type]
    return found.lower, found.upper


def _chance(train: Database, test: NDArray[np.integer]) -> float:
    """Expected hits of an answer that looks at the predicate alone.

    It is the predicate's commonest object, ties drawn, or one drawn evenly among its objects,
    whichever is right more often: where objects are equally common, those held out are rarer.
    """
    _, n_predicates, n_objects = train.shape
    counts = np.zeros((n_predicates, n_objects))
    np.add.at(counts, (train.triples[:, 1], train.triples[:, 2]), 1)
    answers = (counts == counts.max(axis=1, keepdims=True), counts > 0)
    return max(
        float((said / said.sum(axis=1, keepdims=True))[test[:, 1], test[:, 2]].mean())
        for said in answers
    )
