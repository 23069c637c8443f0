"""A check of a witness by the definition of its family, in integers, apart from its search."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capacity.database import Database
from capacity.embedding.tasks import Task
from capacity.embedding.witnesses.witness import Witness

Integers = NDArray[np.int64]
Fact = tuple[int, int, int]
# numbers of an object and of a subject for each dimension
NUMBERS = {"linear": 1, "attention": 1, "CP": 1, "DistMult": 1, "ComplEx": 2, "SimplE": 2,
           "RESCAL": 1, "TuckER": 1}  # fmt: skip
# families without vectors of subjects
ENCODERS = ("linear", "attention")
# integers of a witness are below this, and so are its scores
LARGEST, EXACT = 2**31, 2**62
# scores that are compared at most, which takes some minutes
MOST_SCORES = 10**9


class WrongError(Exception):
    """The reason why a dimension isn't proved."""


@dataclass(frozen=True)
class Facts:
    """Facts by numbers.

    Attributes
    ----------
    triples : set of tuple of int
        Subject, relation and object of each fact.
    shape : tuple of int
        Numbers of subjects, relations and objects.
    subjects, objects : list of int
        The entity of each. Those that have separate vectors are different entities.
    shared : bool
        Whether entities are shared, so that each may answer any query.
    """

    triples: set[Fact]
    shape: tuple[int, int, int]
    subjects: list[int]
    objects: list[int]
    shared: bool

    @classmethod
    def of(cls, db: Database, *, shared: bool) -> Facts:
        """Number the facts of a database, with entities that are shared or not."""
        k, q, v = db.shape
        subjects, objects = [*range(k)], [*range(k, k + v)]
        if shared:
            tokens = sorted({*db.role_ids[0].tolist(), *db.role_ids[2].tolist()})
            number = {token: i for i, token in enumerate(tokens)}
            subjects = [number[token] for token in db.role_ids[0].tolist()]
            objects = [number[token] for token in db.role_ids[2].tolist()]
        triples = {(s, q, o) for s, q, o in db.triples.tolist()}
        return cls(triples, (k, q, v), subjects, objects, shared)

    def all_that_score(self) -> Facts:
        """Return the facts with every entity as a subject and as an object, where they may be."""
        if not self.shared:
            return self
        n = 1 + max(*self.subjects, *self.objects)
        triples = {(self.subjects[s], q, self.objects[o]) for s, q, o in self.triples}
        return Facts(triples, (n, self.shape[1], n), [*range(n)], [*range(n)], True)


def require(holds: object, reason: str) -> None:
    """Raise `WrongError` with a reason unless something holds."""
    if not holds:
        raise WrongError(reason)


def is_witness(witness: Witness, db: Database, task: Task, *, shared: bool) -> bool:
    """Return True if a witness does a task."""
    try:
        check_witness(witness, Facts.of(db, shared=shared), task)
    except WrongError:
        return False
    return True


def check_witness(witness: Witness, facts: Facts, task: Task) -> None:
    """Raise `WrongError` unless the integer scores of a witness do a task, by its definition."""
    require(task in ("signs", "ranking", "both-sides"), f"no witness is known for {task} scores")
    facts = facts.all_that_score()
    n_subjects, n_relations, n_objects = facts.shape
    answers: dict[tuple[int, int], list[int]] = {}
    for s, q, o in facts.triples:
        answers.setdefault((s, q), []).append(o)
    n_queries = len(answers) if task == "ranking" else n_subjects * n_relations
    require(n_queries * n_objects <= MOST_SCORES, f"more than {MOST_SCORES:,} scores to compare")
    every = itertools.product(range(n_subjects), range(n_relations))
    queries = sorted(answers) if task == "ranking" else [*every]
    _check_factors(witness, facts, n_queries)
    # of each (?, q, o) the lowest score of a fact, and the highest of all else
    lowest = np.full((n_relations, n_objects), EXACT)
    highest = np.full((n_relations, n_objects), -EXACT)
    rows = _scores(witness.model, witness.factors, queries, facts)
    for (s, q), scores in zip(queries, rows, strict=True):
        is_answer = np.zeros(n_objects, bool)
        is_answer[answers.get((s, q), [])] = True
        if task == "signs":
            require(((scores > 0) == is_answer).all(), f"a sign of {s, q} is another")
            continue
        true, false = scores[is_answer], scores[~is_answer]
        ranked = not len(true) or not len(false) or true.min() > false.max()
        require(ranked, f"query {s, q} isn't ranked")
        lowest[q] = np.where(is_answer, np.minimum(lowest[q], scores), lowest[q])
        highest[q] = np.where(is_answer, highest[q], np.maximum(highest[q], scores))
    # where there is no fact, the lowest score is larger than all
    require(task != "both-sides" or (lowest > highest).all(), "a query (?, q, o) isn't ranked")


def _check_factors(witness: Witness, facts: Facts, n_queries: int) -> None:
    """Raise `WrongError` unless factors are integers of 64 bits, small, and of their shapes."""
    d, (k, q, v) = witness.dimension, facts.shape
    n = 1 + max(*facts.subjects, *facts.objects)
    require(d >= 1, "a model has one dimension at least")
    # TuckER's vectors of relations may have any dimension
    shapes: dict[str, dict[str, tuple[int | None, ...]]] = {
        "linear": {"h": (n_queries, d), "e": (v, d)},
        "CP": {"a": (k, d), "b": (q, d), "c": (v, d)},
        "DistMult": {"e": (n, d), "w": (q, d)},
        "ComplEx": {"x": (n, d), "y": (n, d), "u": (q, d), "v": (q, d)},
        "SimplE": {"a": (n, d), "b": (n, d), "v": (q, d), "w": (q, d)},
        "RESCAL": {"e": (n, d), "W": (q, d, d)},
        "TuckER": {"e": (n, d), "w": (q, None), "W": (None, d, d)},
    }
    require(witness.model in shapes, f"no witness is known of {witness.model}")
    expected, f = shapes[witness.model], witness.factors
    require({*f} == {*expected}, f"the factors must be {', '.join(expected)}")
    for name, shape in expected.items():
        x = f[name]
        require(x.dtype == np.int64, f"{name} isn't of integers of 64 bits")
        fits = x.ndim == len(shape) and all(
            m in (None, size) for m, size in zip(shape, x.shape, strict=True)
        )
        require(fits, f"{name} isn't of dimension {d}")
        # the absolute value of -2^63 isn't positive
        small = x.min(initial=0) > -LARGEST and x.max(initial=0) < LARGEST
        require(small, f"{name} has too large numbers")
    if witness.model == "TuckER":
        require(f["w"].shape[1] == len(f["W"]), "w and W aren't of one dimension of relations")


def _scores(
    model: str, f: Mapping[str, Integers], queries: list[tuple[int, int]], facts: Facts
) -> Iterator[Integers]:
    """Yield the scores of each query at all objects, by the definition of the model."""
    s_of, o_of = facts.subjects, facts.objects
    for number, (s, q) in enumerate(queries):
        if model == "linear":
            h, e = f["h"][number], f["e"]
        elif model == "CP":
            h, e = _product(f["a"][s], f["b"][q]), f["c"]
        elif model == "DistMult":
            h, e = _product(f["e"][s_of[s]], f["w"][q]), f["e"][o_of]
        elif model == "ComplEx":
            x, y, u, v = f["x"][s_of[s]], f["y"][s_of[s]], f["u"][q], f["v"][q]
            # the real part of (x + i y)(u + i v) times the conjugate of (x' + i y')
            h = np.concatenate([_product(x, u) - _product(y, v), _product(x, v) + _product(y, u)])
            e = np.concatenate([f["x"][o_of], f["y"][o_of]], axis=1)
        elif model == "SimplE":
            h = np.concatenate([_product(f["a"][s_of[s]], f["v"][q]),
                                _product(f["b"][s_of[s]], f["w"][q])])  # fmt: skip
            e = np.concatenate([f["b"][o_of], f["a"][o_of]], axis=1)
        else:
            W = f["W"][q] if model == "RESCAL" else _sum(f["w"][q], f["W"])
            h, e = _sum(f["e"][s_of[s]], W), f["e"][o_of]
        yield _sum(h, e.T)


def _product(a: Integers, b: Integers) -> Integers:
    _fits(int(np.abs(a).max(initial=0)) * int(np.abs(b).max(initial=0)))
    return a * b


def _sum(a: Integers, B: Integers) -> Integers:
    """Return sum_i a[i] B[i]."""
    _fits(int(np.abs(a).max(initial=0)) * int(np.abs(B).max(initial=0)) * len(a))
    return np.tensordot(a, B, axes=1)


def _fits(largest: int) -> None:
    require(largest < EXACT, "the scores are too large for 64 bits")
