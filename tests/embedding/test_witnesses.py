"""Witnesses of every family and task, beside their definitions with dense tensors."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database
from capacity.embedding import MODELS, QueryGraph, Witness, dimension, verify_dimension
from capacity.embedding.queries import Task
from capacity.embedding.verifier.scores import is_witness
from capacity.embedding.witnesses.forms import FORMS
from capacity.embedding.witnesses.training import _Loss
from tests.embedding.definitions import does, scores
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


@pytest.mark.parametrize("model", ["RESCAL", "TuckER"])
@pytest.mark.parametrize("n_queries", [1, 5, 300])
def test_queries_are_a_subjects_vector_times_its_relations_matrix(
    model: str, n_queries: int
) -> None:
    """Few queries among many pairs are multiplied relation by relation, many all at once."""
    g = torch.Generator().manual_seed(n_queries)
    n, q, d = 40, 12, 5
    shapes = FORMS[model].shapes((n, q, n, n, n_queries), d)
    factors = {
        name: torch.randn(*shape, generator=g, dtype=torch.float64).requires_grad_()
        for name, shape in shapes.items()
    }
    pairs = torch.randperm(n * q, generator=g)[:n_queries]
    s, relation = pairs // q, pairs % q
    found = FORMS[model].query(factors, s, relation)
    W = (
        factors["W"]
        if model == "RESCAL"
        else torch.einsum("qp,pij->qij", factors["w"], factors["W"])
    )
    expected = torch.stack([factors["e"][a] @ W[b] for a, b in zip(s, relation, strict=True)])
    torch.testing.assert_close(found, expected)
    target = torch.randn(n_queries, d, generator=g, dtype=torch.float64)
    gradients = (torch.autograd.grad(x, [*factors.values()], target) for x in (found, expected))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("rows", [1, 6])
def test_the_loss_is_the_sum_of_squared_hinges(rows: int) -> None:
    g = torch.Generator().manual_seed(rows)
    scores, threshold = (
        torch.randn(*shape, generator=g, dtype=torch.float64).requires_grad_()
        for shape in ((6, 9), (rows, 1))
    )
    signs = torch.randn(6, 9, generator=g, dtype=torch.float64).sign()
    needed = [scores, threshold] if rows == 6 else [scores]
    mine = _Loss.apply(scores, threshold if rows == 6 else threshold.detach(), signs)
    known = (1 - signs * (scores - threshold)).relu().square().sum()
    torch.testing.assert_close(mine, known)
    gradients = (torch.autograd.grad(x * 3, needed) for x in (mine, known))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)
