"""Witnesses of every family and task, beside their definitions with dense tensors."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database
from capacity.embedding import MODELS, QueryGraph, Witness, dimension, verify_dimension
from capacity.embedding.tasks import Task
from capacity.embedding.verifier.scores import is_witness
from tests.tiers import examples

TASKS: tuple[Task, ...] = ("signs", "ranking", "both-sides")


def a_graph(rng: np.random.Generator, *, separate: bool) -> Database:
    n, q = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    every = np.array([*itertools.product(range(n), range(q), range(n))])
    rows = every[rng.random(len(every)) < rng.choice([0.15, 0.35])].tolist() or [[0, 0, 1]]
    other = "o" if separate else "e"
    return Database.from_triples(
        [(f"e{s}", f"r{q}", f"{other}{o}") for s, q, o in rows], multi="keep"
    )


def tensor_of_facts(db: Database, *, shared: bool) -> np.ndarray:
    graph = QueryGraph.of(db, shared)
    D = np.zeros(graph.places, bool)
    D[tuple(graph.placed.T)] = True
    return D


def scores(
    model: str, factors: Mapping[str, np.ndarray], D: np.ndarray, *, shared: bool
) -> np.ndarray:
    """The scores of a model, as its formula has them, in Python's integers."""
    f = {name: x.astype(object) for name, x in factors.items()}
    k = len(D)

    def subject(name: str) -> np.ndarray:
        return f[name][:k]

    def obj(name: str) -> np.ndarray:
        return f[name] if shared else f[name][k:]

    if model == "CP":
        return np.einsum("sr,qr,or->sqo", f["a"], f["b"], f["c"])
    if model == "DistMult":
        return np.einsum("sr,qr,or->sqo", subject("e"), f["w"], obj("e"))
    if model == "ComplEx":
        x, y, z, t = subject("x"), subject("y"), obj("x"), obj("y")
        terms = [(x, f["u"], z, 1), (x, f["v"], t, 1), (y, f["u"], t, 1), (y, f["v"], z, -1)]
        return np.sum(
            [sign * np.einsum("sr,qr,or->sqo", a, b, c) for a, b, c, sign in terms], axis=0
        )
    if model == "SimplE":
        there = np.einsum("sr,qr,or->sqo", subject("a"), f["v"], obj("b"))
        return there + np.einsum("or,qr,sr->sqo", obj("a"), f["w"], subject("b"))
    W = f["W"] if model == "RESCAL" else np.einsum("qk,kij->qij", f["w"], f["W"])
    return np.einsum("si,qij,oj->sqo", subject("e"), W, obj("e"))


def does(T: np.ndarray, D: np.ndarray, task: Task) -> bool:
    if task == "signs":
        return bool(((T > 0) == D).all())
    views = [D] if task == "ranking" else [D, D.transpose(2, 1, 0)]
    of = [T] if task == "ranking" else [T, T.transpose(2, 1, 0)]
    return all(
        min(row[true]) > max(row[~true])
        for facts, numbers in zip(views, of, strict=True)
        for true, row in zip(
            facts.reshape(-1, facts.shape[2]), numbers.reshape(-1, facts.shape[2]), strict=True
        )
        if true.any() and not true.all()
    )


def tampered(rng: np.random.Generator, witness: Witness) -> Witness:
    factors = {name: x.copy() for name, x in witness.factors.items()}
    for _ in range(int(rng.integers(1, 4))):
        name = str(rng.choice([*factors]))
        place = tuple(int(rng.integers(n)) for n in factors[name].shape)
        here = int(factors[name][place])
        factors[name][place] = rng.choice([0, -here, here + 1, int(rng.integers(-30, 30))])
    return replace(witness, factors=factors)


@pytest.mark.slow
@given(st.integers(0, 2**20))
@settings(max_examples=examples(40))
def test_tampered_witnesses_pass_if_and_only_if_they_do_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    separate = bool(rng.integers(2))
    db = a_graph(rng, separate=separate)
    model = str(rng.choice([name for name, one in MODELS.items() if one.both_sides]))
    task = TASKS[int(rng.integers(3))]
    found = dimension(db, model, task, shared=not separate)
    if found.witness is None:
        return
    D = tensor_of_facts(db, shared=found.shared)
    assert verify_dimension(found, db).proved
    assert does(scores(model, found.witness.factors, D, shared=found.shared), D, task)
    for _ in range(25):
        other = tampered(rng, found.witness)
        T = scores(model, other.factors, D, shared=found.shared)
        assert is_witness(other, db, task, shared=found.shared) == does(T, D, task)


@pytest.mark.parametrize("task", ["signs", "ranking"])
def test_any_encoder_has_a_vector_for_each_query(task: Task) -> None:
    rng = np.random.default_rng(3)
    db = a_graph(rng, separate=True)
    found = dimension(db, "linear", task)
    assert verify_dimension(found, db).proved
    if found.witness is not None:
        D = tensor_of_facts(db, shared=False)
        rows = D.reshape(-1, D.shape[2])
        rows = rows if task == "signs" else rows[rows.any(axis=1)]
        T = found.witness.factors["h"].astype(object) @ found.witness.factors["e"].astype(object).T
        assert does(T[:, None], rows[:, None], task)


def test_every_entity_may_answer_where_entities_are_shared() -> None:
    """A path: B is above C as an answer of (A, ?), and A, which answers nothing, is below both."""
    db = Database.from_triples([("A", "r", "B"), ("B", "r", "C")])
    above = {"a": np.array([[1], [1], [0]]), "b": np.array([[1]])}
    # of CP, with the rows A, B, C: nothing tells the two answers apart in one dimension
    for c, ranks in (([[0], [2], [1]], False), ([[0], [1], [1]], False)):
        witness = Witness("CP", 1, {**above, "c": np.array(c)})
        assert is_witness(witness, db, "ranking", shared=True) == ranks
    two = Witness("CP", 2, {"a": np.array([[1, 0], [0, 1], [0, 0]]), "b": np.array([[1, 1]]),
                            "c": np.array([[0, 0], [1, 0], [0, 1]])})  # fmt: skip
    assert is_witness(two, db, "ranking", shared=True)
    # with the answers below 0 it still ranks the two objects, and not the third entity
    low = replace(two, factors={**two.factors, "c": np.array([[0, 0], [-1, -2], [-2, -1]])})
    assert not is_witness(low, db, "ranking", shared=True)
    apart = {"a": two.factors["a"][:2], "b": two.factors["b"], "c": low.factors["c"][1:]}
    assert is_witness(Witness("CP", 2, apart), db, "ranking", shared=False)


def test_one_line_has_room_for_entities_that_answer_nothing() -> None:
    """Two answers at the ends of a line, and other entities between them."""
    db = Database.from_triples([("A", "r", "B"), ("D", "r", "E")])
    found = dimension(db, "linear", witness=False)
    assert (found.shared, found.sufficient) == (False, 1)
    assert dimension(db, "linear", shared=True, witness=False).sufficient == 1
