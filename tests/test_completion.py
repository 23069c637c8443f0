"""What the experiment on completion counts, beside what is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from capacity.database import Database, structured_database
from capacity.evaluator import mean_interval, nonsense_pairs
from experiments.completion import data, foretold, run

CELLS = data.CELLS
SOME = [0, 4, 13, 20, 29, 36]


def terms(db: Database, rows: np.ndarray) -> set[tuple[str, ...]]:
    return {tuple(db.tokens[i].text for i in row) for row in rows.tolist()}


@pytest.mark.parametrize("number", SOME)
@pytest.mark.parametrize("unknown", [False, True])
def test_a_split_has_every_fact_once_and_every_token_taught(number: int, unknown: bool) -> None:
    db = data.database_of(number, 0)
    if unknown and not data.can_be_unknown(db):
        pytest.skip("every pair has a fact")
    for share, held_out in data.held_out_of(db, number, 0).items():
        split = data.split_of(db, held_out, unknown=unknown, seed=0)
        taught = terms(split.train, split.train.token_triples)
        facts = {fact for fact in taught if fact[2] != "unknown"}
        test = terms(split.train, split.test)
        assert not facts & test
        assert facts | test == terms(db, db.token_triples)
        # all roles stay, so that no test object is new
        assert split.train.shape[:2] == db.shape[:2]
        assert split.train.shape[2] == db.shape[2] + unknown
        assert 0 < len(test) <= max(1, round(share * db.n_triples))
        # pairs that nothing is said of are neither taught, nor test facts, nor unknown
        nothing = terms(split.train, split.nothing)
        assert not nothing & {fact[:2] for fact in taught | test}
        n_unknown = len(taught) - len(facts)
        assert len(nothing) == len(nonsense_pairs(db)) - n_unknown
        assert n_unknown == (round(len(nonsense_pairs(db)) / 2) if unknown else 0)


def test_the_smaller_share_is_part_of_the_larger() -> None:
    db = data.database_of(0, 0)
    held_out = data.held_out_of(db, 0, 0)
    assert set(held_out[0.1].tolist()) < set(held_out[0.3].tolist())


@pytest.mark.parametrize("number", [1, 10])
def test_both_densities_have_as_many_facts(number: int) -> None:
    assert data.database_of(number, 0).n_triples == 96


def test_with_own_objects_nothing_is_added_to_the_effective_rank() -> None:
    number = next(i for i, cell in enumerate(CELLS) if cell.block == "own objects")
    db = data.database_of(number, 0)
    rows = data.measures_of(db, data.held_out_of(db, number, 0), "none")
    for row in rows:
        ends = {row[f"{of}_{end}"] for of in ("train", "all") for end in ("lower", "upper")}
        assert ends == {48}


def test_a_part_has_at_most_the_effective_rank_of_the_whole() -> None:
    db = data.database_of(2, 0)
    small, large = data.measures_of(db, data.held_out_of(db, 2, 0), "none")
    # the larger share held out leaves less
    assert large["train_lower"] <= small["train_lower"] <= small["all_lower"]
    assert large["train_upper"] <= small["train_upper"] <= small["all_upper"]


def test_chance_is_the_commonest_object_or_an_even_draw() -> None:
    rows = [("a", "p", "x"), ("b", "p", "x"), ("c", "p", "y"), ("d", "p", "x"), ("e", "p", "y")]
    db = Database.from_triples(rows)
    x, y = (next(i for i, t in enumerate(db.objects) if t.text == name) for name in "xy")
    # x is commonest: right once in two; drawn evenly, as often
    assert data._chance(db, np.array([[0, 0, x], [1, 0, y]])) == 0.5
    # never right by the commonest, half by an even draw
    assert data._chance(db, np.array([[0, 0, y]])) == 0.5
    assert data._chance(db, np.array([[0, 0, x]])) == 1.0


def test_ranks_are_the_middle_of_ties() -> None:
    z = np.array([[3.0, 1.0, 2.0], [1.0, 1.0, 1.0], [0.0, 5.0, 5.0]])
    # third of three; the middle of three; first and second tied
    assert run._ranks(z, np.array([1, 0, 2])).tolist() == [3.0, 2.0, 1.5]


def test_a_copied_fact_held_out_is_completed_and_a_free_one_is_not() -> None:
    right: dict[float, list[float]] = {}
    for copies in (0.0, 1.0):
        for i in range(3):
            db = structured_database(i, "same", copies, subjects=12, predicates=8, objects=6)
            order = data.removal_order(db, np.random.default_rng(i))
            split = data.split_of(db, order[:20], unknown=False, seed=i)
            layer = list(run.LAYERS.values())[4]
            row = run._row(layer, split, "best", "recalled", 2000, i, any_pair=False)
            assert row["facts_argmax"] == 1
            # the only pairs without a fact are those of the test, all answered by objects
            assert row["pairs_roles"] == 20 >= row["artefacts_roles_argmax"] >= row["test_right"]
            right.setdefault(copies, []).append(row["test_right"] / 20)
    # a layer can't know a free cell: 1 in 6 by chance
    assert np.mean(right[0.0]) < 0.45 < 0.6 < np.mean(right[1.0])


def test_a_mean_over_databases_has_the_interval_of_the_library() -> None:
    rng = np.random.default_rng(1)
    part = pd.DataFrame({"database_id": rng.integers(0, 30, 400)})
    values = rng.normal(size=400) + part["database_id"] / 10
    found = foretold.mean_of(values, part)
    ends = mean_interval(values, part)
    assert found["mean"] == pytest.approx(values.mean())
    assert found["interval"] == pytest.approx(ends, abs=0.05)


def test_a_measure_that_decides_gains_and_another_does_not() -> None:
    rng = np.random.default_rng(0)
    n = 200
    part = pd.DataFrame({
        "database_id": np.arange(n), "held_out": 0.1, "layer_id": "one", "n_test": 20,
        "test_right_p95": 0, "chance": 0.2,
        **dict.fromkeys((*foretold.RANKS, *foretold.RIVALS), 1.0),
    })  # fmt: skip
    rank, bits = foretold.RANKS[0], "description length added"
    part[rank], part[bits] = rng.normal(size=(2, n))
    part["test_right"] = rng.binomial(20, 1 / (1 + np.exp(part[rank])))
    found = foretold.completion(part)
    # log odds fall by one for a unit
    low, high = found["alone"][rank]["interval"]
    assert low < -part[rank].std() < high < 0
    assert found["gain_alone"][rank]["interval"][0] > 0
    assert found["gain_alone"][bits]["interval"][0] < 0.005
    assert found["gain_of_rank_beside_rivals"]["interval"][0] > 0
    # those that don't vary aren't asked
    assert set(found["alone"]) == {rank, bits}
