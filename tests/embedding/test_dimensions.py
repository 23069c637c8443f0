"""Bounds of dimensions: oracles, order among tasks, witnesses, and what a check refuses."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database
from capacity.embedding import (
    MODELS,
    Dimension,
    Obstruction,
    Quantities,
    QueryGraph,
    Reason,
    Witness,
    dimension,
    dimensions,
    in_words,
    verify_dimension,
)
from capacity.embedding.proofs import Shattered, SmallNorm
from capacity.embedding.witnesses.training import Asked
from capacity.errors import CertificateError, InvalidArgumentError, InvalidTypeError
from capacity.layer import store_in_query_key
from tests.tiers import examples

TRAINED = tuple(name for name, model in MODELS.items() if model.trained)
TASKS = ("exact", "signs", "ranking", "both-sides")


def graph_of(rows: list[tuple[int, int, int]], *, separate: bool = False) -> Database:
    other = "o" if separate else "e"
    named = [(f"e{s}", f"r{q}", f"{other}{o}") for s, q, o in rows]
    return Database.from_triples(named, multi="keep")


@st.composite
def graphs(draw: st.DrawFn) -> Database:
    n, q = draw(st.integers(2, 5)), draw(st.integers(1, 3))
    every = [*itertools.product(range(n), range(q), range(n))]
    rows = draw(st.sets(st.sampled_from(every), min_size=1, max_size=12))
    return graph_of(sorted(rows), separate=draw(st.booleans()))


def both(found: Dimension) -> tuple[int | None, int | None]:
    return found.necessary, found.sufficient


@pytest.mark.slow
@given(graphs())
@settings(max_examples=examples(25))
def test_bounds_are_in_order_and_tasks_are_one_after_another(db: Database) -> None:
    for model in TRAINED:
        ends = {
            task: both(dimension(db, model, task, witness=False))  # type: ignore[arg-type]
            for task in TASKS
            if MODELS[model].both_sides or task != "both-sides"
        }
        for least, most in ends.values():
            assert (least is None) == (most is None)
            assert least is None or 1 <= least <= (most or 0)
        (_, exact), (signs_least, signs) = ends["exact"], ends["signs"]
        least, ranking = ends["ranking"]
        both_sides = ends.get("both-sides", (least, ranking))[1]
        if exact is not None:
            assert signs is not None
            assert signs <= exact + 1
        if signs is not None:
            assert both_sides is not None
            assert both_sides <= signs
            assert (least or 0) <= (signs_least or 0)
        if both_sides is not None:
            assert ranking is not None
            assert ranking <= both_sides


@pytest.mark.slow
@given(graphs())
@settings(max_examples=examples(25), deadline=None)
def test_a_layer_of_attention_is_a_linear_output_layer_that_has_a_construction(
    db: Database,
) -> None:
    for task in ("exact", "signs", "ranking"):
        layer, output = (
            dimension(db, model, task, witness=False)  # type: ignore[arg-type]
            for model in ("attention", "linear")
        )
        assert verify_dimension(layer, db).proved
        assert layer.necessary == output.necessary
        if task == "ranking" and db.is_functional:
            assert layer.sufficient == store_in_query_key(db, 0.9).config.d_model
        else:
            assert layer.sufficient is None
            assert str(layer) == f"attention: at least {layer.necessary}"


@pytest.mark.slow
@given(graphs(), st.integers(0, 2**20))
@settings(max_examples=examples(20), deadline=None)
def test_other_names_are_the_same_graph(db: Database, seed: int) -> None:
    """Ranks and what is impossible are the same, and no bound contradicts one of the other names.

    Orders, points and intervals of ranks are sought by heuristics, which numbers decide.
    """
    rng = np.random.default_rng(seed)
    new = {id_: f"{rng.integers(10**9)} {id_}" for id_ in range(db.n_tokens)}
    renamed = [(new[s], new[q], new[o]) for s, q, o in db.token_triples.tolist()]
    other = Database.from_triples(renamed, multi="keep")
    for model in MODELS:
        for task in TASKS:
            if task == "both-sides" and not MODELS[model].both_sides:
                continue
            here, there = (
                dimension(one, model, task, witness=False)
                for one in (db, other)  # type: ignore[arg-type]
            )
            assert (here.impossible is None) == (there.impossible is None)
            for one, two in ((here, there), (there, here)):
                assert (one.necessary or 0) <= (
                    math.inf if two.sufficient is None else two.sufficient
                )
            if task == "exact" and model in ("linear", "RESCAL", "TuckER", "attention"):
                assert both(here) == both(there)


@pytest.mark.slow
@given(graphs())
@settings(max_examples=examples(8))
def test_witnesses_are_between_the_bounds_and_check(db: Database) -> None:
    for model in TRAINED:
        found = dimension(db, model)
        assert verify_dimension(found, db).proved
        if found.witness is not None:
            assert found.necessary is not None
            assert found.necessary <= found.witness.dimension == found.sufficient


def test_functional_facts_take_two_dimensions_of_any_output_layer() -> None:
    rng = np.random.default_rng(0)
    rows = [(s, q, int(rng.integers(9))) for s in range(8) for q in range(4)]
    assert both(dimension(graph_of(rows, separate=True), "linear", witness=False)) == (2, 2)
    # two objects lie on a line
    two = [(s, q, (s + q) % 2) for s in range(3) for q in range(2)]
    assert both(dimension(graph_of(two, separate=True), "linear", witness=False)) == (1, 1)


@pytest.mark.slow
@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 2**20))
@settings(max_examples=examples(60))
def test_one_dimension_is_decided_where_a_query_has_one_answer(k: int, q: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [
        (i, j, int(rng.integers(2))) for i in range(k) for j in range(q) if rng.random() < 0.8
    ] or [(0, 0, 0)]
    db = graph_of(rows, separate=True)
    signs = np.zeros((k, q), int)
    for i, j, o in rows:
        signs[i, j] = 2 * o - 1
    fits = len({o for _, _, o in rows}) < 2 or any(
        (signs * np.outer(a, b) >= 0).all()
        for a in itertools.product((1, -1), repeat=k)
        for b in itertools.product((1, -1), repeat=q)
    )
    found = dimension(db, "CP", witness=False)
    assert both(found) == (1, 1) if fits else found.necessary == 2


@pytest.mark.parametrize("c", [1, 2])
def test_all_sets_of_c_objects_take_2c_dimensions(c: int) -> None:
    sets = [*itertools.combinations(range(2 * c + 3), c)]
    rows = [(s, 0, o) for s, objects in enumerate(sets) for o in objects]
    db = graph_of(rows, separate=True)
    assert both(dimension(db, "linear", "ranking", witness=False)) == (2 * c, 2 * c)
    assert both(dimension(db, "linear", "signs", witness=False)) == (2 * c + 1, 2 * c + 1)


@pytest.mark.parametrize("n_relations", [2, 3, 4])
def test_the_cube_takes_a_dimension_for_each_relation(n_relations: int) -> None:
    answers = [*itertools.product((0, 1), repeat=n_relations)]
    rows = [(s, q, o) for s, row in enumerate(answers) for q, o in enumerate(row)]
    db = graph_of(rows, separate=True)
    for model in ("CP", "DistMult", "SimplE", "ComplEx"):
        found = dimension(db, model, effort="standard")
        least = n_relations if model in ("CP", "DistMult") else -(-n_relations // 2)
        assert found.necessary == least
        assert found.sufficient == n_relations or model in ("SimplE", "ComplEx")
    # and 2 c + 1 = 3 dimensions of a linear output layer
    most = dimension(db, "linear", "signs", witness=False).sufficient
    assert most is not None
    assert most <= 3


@pytest.mark.slow
def test_what_distmult_cannot_do() -> None:
    circle = graph_of([(0, 0, 1), (1, 0, 2), (2, 0, 0)])
    path = graph_of([(0, 0, 1), (1, 0, 2)])
    pair = graph_of([(0, 0, 1), (1, 0, 0)])
    expected = {"circle": (None,) * 4, "path": (None, None, 3, None), "pair": (2, 3, 3, 2)}
    for name, db in (("circle", circle), ("path", path), ("pair", pair)):
        found = [dimension(db, "DistMult", task, witness=False) for task in TASKS]  # type: ignore[arg-type]
        assert [one.sufficient is None for one in found] == [x is None for x in expected[name]]
        assert all(verify_dimension(one, db).proved for one in found)
    found = dimension(circle, "DistMult", witness=False)
    assert found.impossible is not None
    assert found.impossible.certificate == (Obstruction(0, (0, 1, 2, 0)),)
    # with separate vectors it is CP
    assert dimension(circle, "DistMult", shared=False, witness=False).sufficient is not None
    # training agrees where theory allows it
    assert dimension(path, "DistMult").witness is not None


def test_rescal_takes_the_joint_rank_for_exact_scores() -> None:
    db = graph_of([(0, 0, 1), (1, 0, 2), (2, 1, 3), (3, 1, 0)])
    assert both(dimension(db, "RESCAL", "exact")) == (4, 4)
    assert both(dimension(db, "TuckER", "exact")) == (4, 4)
    assert both(dimension(db, "linear", "exact")) == (4, 4)


def ranked(witness: Witness, db: Database) -> bool:
    """True if a CP witness ranks every query, in Python's integers."""
    a, b, c = (witness.factors[name].tolist() for name in "abc")
    facts = {(s, q, o) for s, q, o in db.triples.tolist()}
    for s, q in {(s, q) for s, q, _ in facts}:
        scores = [sum(x * y * z for x, y, z in zip(a[s], b[q], row, strict=True)) for row in c]
        true = [x for o, x in enumerate(scores) if (s, q, o) in facts]
        false = [x for o, x in enumerate(scores) if (s, q, o) not in facts]
        if false and min(true) <= max(false):
            return False
    return True


@pytest.mark.slow
def test_tampered_witnesses_are_refused() -> None:
    rng = np.random.default_rng(0)
    rows = [(s, q, int(rng.integers(6))) for s in range(7) for q in range(5)]
    db = graph_of(rows, separate=True)
    found = dimension(db, "CP")
    assert found.witness is not None
    refused = 0
    for _ in range(400):
        factors = {name: x.copy() for name, x in found.witness.factors.items()}
        name = str(rng.choice([*factors]))
        place = tuple(int(rng.integers(n)) for n in factors[name].shape)
        others = [0, -int(factors[name][place]), int(rng.integers(-900, 900))]
        factors[name][place] = others[int(rng.integers(3))]
        changed = replace(found, witness=replace(found.witness, factors=factors))
        verdict = verify_dimension(changed, db)
        assert verdict.proved == ranked(changed.witness, db)  # type: ignore[arg-type]
        refused += not verdict.proved
    assert refused > 100
    for what, wrong in (
        ({"dimension": found.witness.dimension - 1}, "isn't of dimension"),
        ({"dimension": 0}, "one dimension at least"),
        ({"factors": {}}, "the factors must be a, b, c"),
        ({"model": "ComplEx"}, "of another model"),
    ):
        changed = replace(found, witness=replace(found.witness, **what))
        assert wrong in str(verify_dimension(changed, db).reason)
    for value in (2**40, -(2**63)):
        factors = {name: np.full_like(x, value) for name, x in found.witness.factors.items()}
        changed = replace(found, witness=replace(found.witness, factors=factors))
        assert "too large" in str(verify_dimension(changed, db).reason)
    # products of small types would wrap around
    for kind in (float, np.int8, np.int32, np.uint64):
        others = {name: x.astype(kind) for name, x in found.witness.factors.items()}
        changed = replace(found, witness=replace(found.witness, factors=others))
        assert "isn't of integers" in str(verify_dimension(changed, db).reason)


@pytest.mark.slow
@given(graphs(), st.integers(0, 2**20))
@settings(max_examples=examples(40))
def test_tampered_points_and_cycles_are_refused(db: Database, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for model, task in (("CP", "ranking"), ("linear", "signs"), ("DistMult", "both-sides")):
        found = dimension(db, model, task, witness=False)  # type: ignore[arg-type]
        assert verify_dimension(found, db).proved
        for i, reason in enumerate(found.reasons):
            proof = reason.certificate
            if proof is None:
                reasons = list(found.reasons)
                mine = [one.value for one in found.reasons
                        if one.side == reason.side and one.certificate is None]  # fmt: skip
                beyond = max(mine) + 1 if reason.side == "necessary" else min(mine) - 1
                reasons[i] = replace(reason, value=beyond)
                assert not verify_dimension(replace(found, reasons=tuple(reasons)), db).proved
                # what is weaker than a bound holds, in any words
                reasons[i] = replace(reason, value=mine[0], words="otherwise said")
                assert verify_dimension(replace(found, reasons=tuple(reasons)), db).proved
                continue
            if isinstance(proof, tuple):
                one = proof[0]
                wrong = [
                    (replace(one, relation=99),),
                    (replace(one, entities=one.entities[::-1]),),
                    (replace(one, entities=one.entities[:1]),),
                    (),
                ]
            else:
                wrong = [
                    replace(proof, points=proof.points + 10**6),
                    replace(proof, points=proof.points[None]),
                    replace(proof, rows=np.full_like(proof.rows, -1)),
                    replace(
                        proof, kind="queries" if proof.kind == "comparisons" else "comparisons"
                    ),
                ]
            if isinstance(proof, SmallNorm):
                wrong.append(replace(proof, dimension=proof.dimension + 1))
                wrong.append(replace(proof, dimension=0))
            elif isinstance(proof, Shattered):
                at = int(rng.integers(len(proof.rows)))
                wrong += [
                    replace(proof, rows=np.delete(proof.rows, at)),
                    # one dimension needs no proof
                    *([replace(proof, points=proof.points[:-1])] if reason.value > 1 else []),
                    replace(proof, points=np.concatenate([proof.points[:1], proof.points])),
                ]
            for tampered in wrong:
                reasons = list(found.reasons)
                reasons[i] = replace(reason, certificate=tampered)  # type: ignore[arg-type]
                assert not verify_dimension(replace(found, reasons=tuple(reasons)), db).proved
            if reason.side == "necessary":
                reasons = list(found.reasons)
                reasons[i] = replace(reason, value=reason.value + 1)
                assert not verify_dimension(replace(found, reasons=tuple(reasons)), db).proved


CIRCLE = [(0, 0, 1), (1, 0, 2), (2, 0, 0)]
STOPPED = Obstruction(0, (0, 1, 2, 0))


NO_POINTS = Shattered("objects", np.zeros(1, np.int64), np.zeros(1, np.int64))


@pytest.mark.parametrize("model", ["CP", "linear", "DistMult", "RESCAL"])
@pytest.mark.parametrize("proof", [(), (STOPPED,), NO_POINTS])
@pytest.mark.parametrize("side", ["necessary", "sufficient", "impossible"])
def test_a_certificate_of_another_kind_proves_nothing(model: str, proof: Any, side: Any) -> None:
    db = graph_of(CIRCLE)
    for task in ("signs", "ranking"):
        found = dimension(db, model, task, witness=False)
        value = {"necessary": 50, "sufficient": 1, "impossible": 0}[side]
        claim = replace(found, reasons=(Reason(side, value, "forged", proof),))
        true = model == "DistMult" and side == "impossible" and proof == (STOPPED,)
        assert verify_dimension(claim, db).proved == true


def test_what_a_family_isnt_asked_for_is_refused() -> None:
    db = graph_of([(0, 0, 0), (1, 0, 0), (1, 0, 1), (2, 0, 2), (3, 0, 1), (3, 0, 2)], separate=True)
    of = Quantities(db, QueryGraph.of(db, shared=False), "quick", 0)
    for model in ("linear", "attention"):
        found = dimension(db, model, witness=False)
        claim = replace(
            found, task="both-sides", reasons=(*MODELS[model].bounds(of, "both-sides"),)
        )
        assert "isn't asked for both-sides" in str(verify_dimension(claim, db).reason)


def test_a_witness_of_another_family_is_none_of_attention() -> None:
    db = graph_of(CIRCLE)
    witness = dimension(db, "TuckER", "signs").witness
    assert witness is not None
    found = dimension(db, "attention", "signs")
    claim = replace(found, witness=replace(witness, model="attention"))
    assert "no witness is known of attention" in str(verify_dimension(claim, db).reason)


def test_points_that_are_no_integers_prove_nothing() -> None:
    db = graph_of([(0, 0, 0), (1, 0, 1)], separate=True)
    found = dimension(db, "linear", "signs", witness=False)
    rows = np.array([0, 1])
    wrong: tuple[Any, ...] = (np.array([0.0, 0.5]), np.array([0, 1], np.int8))
    for points in wrong:
        reason = Reason("necessary", 2, "forged", Shattered("objects", points, rows))
        assert not verify_dimension(replace(found, reasons=(reason,)), db).proved


def test_an_estimate_is_counted_again() -> None:
    db = graph_of([(s, 0, s % 2) for s in range(6)], separate=True)
    found = dimension(db, "CP", witness=False)
    assert found.estimate is not None
    for changed in ({"dimension": 99}, {"bits": math.nan}, {"bits": found.estimate.bits + 1}):
        claim = replace(found, estimate=replace(found.estimate, **changed))
        why = "finite" if changed.get("bits") is math.nan else "the estimate is"
        assert why in str(verify_dimension(claim, db).reason)


def test_many_relations_and_few_queries_take_little_memory() -> None:
    """All pairs of a subject and a relation would be 9 GB of scores."""
    rows = [(i, i, (7 * i + j) % 5000) for i in range(1300) for j in range(3)]
    graph = QueryGraph.of(graph_of(rows))
    asked = Asked(graph, "ranking")
    assert asked.true.shape == (1300, graph.n_entities)
    assert asked.true.sum() == graph.n_facts
    assert (asked.queries == np.unique(graph.placed[:, :2], axis=0)).all()


def test_wrong_arguments_are_told() -> None:
    db = graph_of([(0, 0, 1)])
    for wrong in (None, 7, b"graph"):
        with pytest.raises(InvalidTypeError):
            dimension(wrong)
    with pytest.raises(InvalidTypeError):
        verify_dimension(None, db)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="several names"):
        dimensions(db, "CP")
    with pytest.raises(InvalidArgumentError, match="shared"):
        dimension(db, shared=np.array([1, 2]))  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="sequence"):
        in_words(dimension(db, "CP", witness=False), db)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="about the facts"):
        in_words([dimension(db, "CP", witness=False)], graph_of([(0, 0, 0)]))
    assert len(dimensions(db, ["CP", "CP"], witness=False)) == 1
    for changed in ({"model": "TransE"}, {"task": "rank"}, {"effort": "much"}):
        with pytest.raises(InvalidArgumentError, match=next(iter(changed))):
            dimension(db, **changed)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="a model that scores any triple"):
        dimension(db, "linear", "both-sides")
    found = dimension(db, witness=False)
    with pytest.raises(CertificateError, match="of these facts"):
        verify_dimension(found, graph_of([(0, 0, 2)]))


@pytest.mark.slow
def test_an_estimate_is_refused_where_it_fails() -> None:
    rng = np.random.default_rng(0)
    often = graph_of([(s, q, int(rng.integers(9))) for s in range(30) for q in range(6)],
                     separate=True)  # fmt: skip
    once = graph_of([(s, q, 6 * s + q) for s in range(30) for q in range(6)], separate=True)
    assert (found := dimension(often, witness=False).estimate) is not None
    assert found.dimension is not None
    assert (found := dimension(once, witness=False).estimate) is not None
    assert found.dimension is None
    assert "single fact" in found.words
    assert dimension(often, "CP", "signs", witness=False).estimate is None
