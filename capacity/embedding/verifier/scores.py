"""A check of a witness by the definition of its family, in integers, apart from its search.

Products of matrices are computed in float64, where all integers up to 2^53 are exact:
if the largest of each matrix times the number of terms stays below that, so does every product and
every sum of some of them, in any order, and the result is the integer.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from capacity.database import Database
from capacity.embedding.proofs import Witness
from capacity.embedding.queries import Task
from capacity.embedding.verifier.conversion import checked_witness
from capacity.embedding.verifier.numbered_facts import Facts
from capacity.errors import MemoryBudgetError
from capacity.exact.types import Indices
from capacity.rank.verifier.budget import CheckBudget
from capacity.rank.verifier.entries import Refuted, require

Scores = NDArray[np.float64]
EXACT = 2**53
# scores of a block
MOST_SCORES = 2**21
# products a step; steps for a score, for a query, for a fact, and for a block
PRODUCTS, SCORE, QUERY, FACT, BLOCK = 8, 5, 300, 600, 200_000
# bytes for a score of a block, for a query, and for a fact
SCORE_BYTES, QUERY_BYTES, FACT_BYTES = 24, 64, 64


class Exact(NamedTuple):
    """An integer matrix in float64, and the largest absolute value in it."""

    matrix: Scores
    largest: int

    @classmethod
    def of(cls, matrix: Indices) -> Exact:
        """Convert a matrix of integers below 2^63 in absolute value."""
        return cls(matrix.astype(np.float64), int(np.abs(matrix).max(initial=0)))


class Asked(NamedTuple):
    """Queries in the order of their relations, with the facts among them.

    Attributes
    ----------
    subjects, relations : ndarray of int64, shape (n_queries,)
        Of each query.
    numbers : ndarray of int64, shape (n_queries,)
        The number of each query in the order of subjects, as rows of factors have it.
    rows, answers : ndarray of int64, shape (n_facts,)
        The query of each fact, ascending, and its object.
    """

    subjects: Indices
    relations: Indices
    numbers: Indices
    rows: Indices
    answers: Indices


def is_witness(witness: Witness, db: Database, task: Task, *, shared: bool) -> bool:
    """Return True if a witness does a task, and is checked within the budget of a file."""
    budget = CheckBudget.of(db.n_facts)
    placed = Facts.of(db, shared=shared)
    try:
        check_witness(checked_witness(witness, placed, task, budget), placed, task, budget)
    except (Refuted, MemoryBudgetError):
        return False
    return True


def check_witness(witness: Witness, placed: Facts, task: Task, budget: CheckBudget) -> None:
    """End the check unless the integer scores of a witness do a task, by its definition.

    Its factors must have passed `conversion.checked_witness` for these facts and this task.
    """
    require(task in ("signs", "ranking", "both-sides"), f"no witness is known for {task} scores")
    _, q, v = placed.shape
    _charge(witness, placed, task, budget)
    asked = _asked(placed, task)
    # of each (?, q, o) the lowest score of a fact, and the highest of all else
    sides = (q, v) if task == "both-sides" else (0, 0)
    lowest, highest = np.full(sides, np.inf), np.full(sides, -np.inf)
    for start, scores in _blocks(witness, placed, asked):
        here = slice(*np.searchsorted(asked.rows, (start, start + len(scores))))
        rows, answers = asked.rows[here] - start, asked.answers[here]
        true = scores[rows, answers]
        scores[rows, answers] = -np.inf
        above = np.zeros(len(scores)) if task == "signs" else scores.max(axis=1)
        low = np.flatnonzero(true <= above[rows])
        if len(low):
            _refuse(asked, start + int(rows[low[0]]), "a fact isn't above all else")
        if task == "signs" and (high := np.flatnonzero((scores >= 0).any(axis=1))).size:
            _refuse(asked, start + int(high[0]), "what is no fact isn't below 0")
        if task == "both-sides":
            relations = asked.relations[start : start + len(scores)]
            np.minimum.at(lowest, (relations[rows], answers), true)
            first = np.flatnonzero(np.diff(relations, prepend=-1))
            highest[relations[first]] = np.maximum(
                highest[relations[first]], np.maximum.reduceat(scores, first, axis=0)
            )
    # where there is no fact, the lowest score is larger than all
    require((lowest > highest).all(), "a query (?, q, o) isn't ranked")


def _refuse(asked: Asked, row: int, why: str) -> None:
    at = int(asked.subjects[row]), int(asked.relations[row])
    raise Refuted(f"{why}, in query {at}")


def _charge(witness: Witness, placed: Facts, task: Task, budget: CheckBudget) -> None:
    k, q, v = placed.shape
    d, f = witness.dimension, witness.factors
    n = len(placed.queries) if task == "ranking" else k * q
    products = n * v * d * (2 if witness.model in ("ComplEx", "SimplE") else 1)
    if witness.model in ("RESCAL", "TuckER"):
        # the matrix of each relation, and its conversion
        products += n * d**2 + PRODUCTS * q * d**2
    if witness.model == "TuckER":
        products += q * f["W"].size
    blocks = 1 + n * max(v, d) // MOST_SCORES + (q if witness.model in ("RESCAL", "TuckER") else 0)
    one_block = max(MOST_SCORES, v, 2 * d) + v * 2 * d + d**2
    steps = products // PRODUCTS + SCORE * n * v + QUERY * n + FACT * len(placed.triples)
    held = SCORE_BYTES * one_block + QUERY_BYTES * n + FACT_BYTES * len(placed.triples)
    budget.spend(steps + BLOCK * blocks, held + (16 * q * v if task == "both-sides" else 0))


def _asked(placed: Facts, task: Task) -> Asked:
    k, q, _ = placed.shape
    s, relation, o = placed.triples.T
    if task == "ranking":
        subjects, relations = placed.queries.T
        numbers = np.lexsort((subjects, relations))
        subjects, relations = subjects[numbers], relations[numbers]
        row = np.empty(len(numbers), np.int64)
        row[numbers] = np.arange(len(numbers))
        row = row[placed.query_of]
    else:
        relations, subjects = np.divmod(np.arange(k * q), k)
        numbers, row = subjects * q + relations, relation * k + s
    order = np.argsort(row, kind="stable")
    return Asked(subjects, relations, numbers, row[order], o[order])


def _blocks(witness: Witness, placed: Facts, asked: Asked) -> Iterator[tuple[int, Scores]]:
    """Yield the scores of some queries at all objects at a time, with the number of the first."""
    model, f = witness.model, witness.factors
    # the vectors of objects come after those of subjects, if these are apart
    first = 0 if placed.shared else placed.shape[0]
    joined = {"ComplEx": ("x", "y"), "SimplE": ("b", "a")}.get(model)
    if joined:
        E = np.concatenate([f[name][first:] for name in joined], axis=1)
    else:
        E = f["c"] if model == "CP" else f["e"] if model == "linear" else f["e"][first:]
    objects, n = Exact.of(E.T), len(asked.subjects)
    core = Exact.of(f["W"].reshape(len(f["W"]), -1)) if model == "TuckER" else None
    ends = [*range(0, n, max(1, MOST_SCORES // max(len(E), E.shape[1]))), n]
    if model in ("RESCAL", "TuckER"):
        ends = np.union1d(ends, np.flatnonzero(np.diff(asked.relations)) + 1).tolist()
    for start, end in itertools.pairwise(ends):
        here = slice(start, end)
        s, q = asked.subjects[here], asked.relations[here]
        if model in ("RESCAL", "TuckER"):
            # a block has one relation
            W = f["W"][q[0]] if core is None else _whole(_times(f["w"][q[:1]], core))
            H = _whole(_times(f["e"][s], Exact.of(W.reshape(E.shape[1], -1))))
        else:
            H = _vectors(model, f, s, q, asked.numbers[here])
        yield start, _times(H, objects)


def _vectors(
    model: str, f: Mapping[str, Indices], s: Indices, q: Indices, numbers: Indices
) -> Indices:
    """Vectors of queries, by the definition of the model; integers below 2^31 times one another."""
    if model == "linear":
        return f["h"][numbers]
    if model == "CP":
        return f["a"][s] * f["b"][q]
    if model == "DistMult":
        return f["e"][s] * f["w"][q]
    if model == "ComplEx":
        # the real part of (x + i y)(u + i v) times the conjugate of (x' + i y'); the sum of two
        # products of numbers below 2^31 fits 64 bits
        x, y, u, v = f["x"][s], f["y"][s], f["u"][q], f["v"][q]
        return np.concatenate([x * u - y * v, x * v + y * u], axis=1)
    return np.concatenate([f["a"][s] * f["v"][q], f["b"][s] * f["w"][q]], axis=1)


def _times(A: Indices, B: Exact) -> Scores:
    left = Exact.of(A)
    largest = left.largest * B.largest * max(1, len(B.matrix))
    require(largest < EXACT, "the scores are too large to be exact, 2^53 or more")
    return left.matrix @ B.matrix


def _whole(x: Scores) -> Indices:
    return x.astype(np.int64)
