"""Real stores: their parts, the controls beside them, and what is concluded of both."""

from __future__ import annotations

import json
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest

from experiments.common.conclusions import rounded
from experiments.size import stores, stores_numbers
from experiments.size.measures_numbers import MEASURES
from experiments.size.stores_data import (
    COMPLETE,
    STORES,
    control,
    part,
    store,
    with_missing_pairs,
)


def named(db) -> set[tuple[str, str, str]]:  # type: ignore[no-untyped-def]
    names = [[db.name(term) for term in role] for role in db.roles]
    return {tuple(names[mode][i] for mode, i in enumerate(fact)) for fact in db.triples.tolist()}  # type: ignore[misc]


@pytest.mark.parametrize("name", STORES)
def test_a_part_has_that_many_facts_of_the_store_one_for_a_pair(name: str) -> None:
    facts = store(name)
    assert len({(s, q) for s, q, _ in facts}) == len(facts)
    for n in (50, 158):
        parts = [part(name, n, i) for i in (0, 1, 0)]
        drawn = [named(db) for db in parts if db is not None]
        if not drawn:
            # less than 6/5 of it is all that there is
            assert len(facts) < 1.2 * n
            continue
        assert all(len(each) == n and each <= set(facts) for each in drawn)
        # the seed decides
        assert drawn[0] == drawn[2] != drawn[1]


@pytest.mark.parametrize("name", STORES)
def test_a_control_has_the_numbers_of_the_part(name: str) -> None:
    db = part(name, 50, 0)
    assert db is not None
    one, other = control(db, 0), control(db, 1)
    for each in (one, other):
        assert (each.shape, each.n_triples, each.n_tokens) == (db.shape, 50, db.n_tokens)
        assert each.is_functional
    assert named(one) != named(other)


@pytest.mark.parametrize(("name", "share"), [*product(COMPLETE, stores.MISSING)])
def test_that_share_of_the_pairs_has_no_fact(name: str, share: float) -> None:
    size = {"n_triples": stores.FACTS, "n_predicates": stores.PREDICATES}
    db = with_missing_pairs(name, share, 0, **size)
    assert db.n_triples == stores.FACTS
    assert named(db) <= set(store(name))
    # of the subjects that were drawn, a few may have lost all their facts
    found = 1 - db.n_triples / (db.shape[0] * db.shape[1])
    assert found == pytest.approx(share, abs=0.15)


@pytest.mark.parametrize("start", [0, 3, 11])
def test_the_lowest_rung_is_beside_one_that_does_not_memorise(start: int) -> None:
    for n_below in range(13):
        asked: list[int] = []

        def memorises(rung: int, n_below: int = n_below, asked: list[int] = asked) -> bool:
            asked.append(rung)
            return rung >= n_below

        assert stores.lowest(memorises, start, 12) == n_below
        assert all(0 <= rung < 12 for rung in asked)
        assert len(set(asked)) == len(asked)


def known(slope: float, law_is_off_by: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Parts whose description length is a share of their controls', which alone decides.

    The ladder has a rung at each 2 % so that found sizes are what was put in.
    """
    rng = np.random.default_rng(0)
    databases: list[dict[str, object]] = []
    runs: list[dict[str, object]] = []

    def add(name: str, size: float, **about: object) -> None:
        databases.append({"database_id": name, "n_triples": 100, **about})
        for kind, held in product(("plain", "best"), (False, True)):
            runs.append({"database_id": name, "kind": kind, "memorised": held,
                         "foretold": size * (1.01 if held else 1 / 1.01)})  # fmt: skip

    blank = dict.fromkeys((*MEASURES.values(), "effective_rank_lower", "effective_rank_upper"), 50)
    for store_name, i in product(STORES, range(4)):
        identity = f"{store_name} 100 {i}"
        share = float(np.exp(rng.normal(-0.5, 0.4)))
        other = {column: 50 * float(np.exp(rng.normal(0, 0.3))) for column in MEASURES.values()}
        about = {"store": store_name, "of": identity, "share": None}
        about |= blank
        mine = {**about, **other, "what": "part", "description_length": 80 * share}
        add(identity, 100 * law_is_off_by * share**slope, **mine)
        for j in range(5):
            its = {**about, "what": "control", "description_length": 80}
            add(f"{identity} control {j}", 100 * law_is_off_by, **its)
    for store_name, share, i in product(COMPLETE, stores.MISSING, range(6)):
        rank = 40 * float(np.exp(rng.normal(0, 0.2)))
        effective = rank * (1 - share / 2)
        ends = {"database_rank_lower": rank, "database_rank_upper": rank,
                "effective_rank_lower": effective, "effective_rank_upper": effective}  # fmt: skip
        add(f"missing {store_name} {share} {i}", 3 * effective, what="missing", store=store_name,
            of=f"{store_name} {share} {i}", share=share, **{**blank, **ends})  # fmt: skip
    return pd.DataFrame(runs), pd.DataFrame(databases)


@pytest.mark.slow
def test_the_measure_that_decides_explains_what_is_left() -> None:
    found = stores_numbers.conclusions(*known(0.5, 1.0))["best"]
    left = found["left"]
    assert left["description length"]["value"] == pytest.approx(1, abs=0.01)
    assert left["description length"]["slope"] == pytest.approx(0.5, abs=0.02)
    others = {name: one["value"] for name, one in left.items() if name != "description length"}
    # it foretells the mean, and not how parts differ
    constant = others.pop(stores_numbers.CONSTANT)
    assert 0.4 < constant < 0.7
    assert all(value < 0.5 for value in others.values())
    # as it is written
    json.dumps(rounded(found))


@pytest.mark.slow
def test_errors_of_controls_are_the_law_s_and_what_is_left_is_the_part_s() -> None:
    found = stores_numbers.conclusions(*known(0.5, 1.3))["best"]
    assert found["parts"] == found["parts_asked"] == 4 * len(STORES)
    # log 1.3, the same for all controls
    assert found["all"]["controls"]["mean"] == pytest.approx(np.log(1.3), abs=0.01)
    assert found["all"]["controls_within"]
    # half of the mean logarithm of the shares, -0.5
    assert found["all"]["left"]["mean"] == pytest.approx(-0.25, abs=0.1)
    assert found["all"]["error"]["mean"] == pytest.approx(
        found["all"]["controls"]["mean"] + found["all"]["left"]["mean"]
    )


@pytest.mark.slow
def test_of_rank_and_effective_rank_the_one_that_decides_is_found() -> None:
    missing = stores_numbers.conclusions(*known(0.5, 1.0))["best"]["missing"]
    assert missing["slopes_together"]["effective rank"]["value"] == pytest.approx(1, abs=0.01)
    assert missing["slopes_together"]["rank"]["value"] == pytest.approx(0, abs=0.01)
    assert missing["r2_alone"]["effective rank"]["value"] == pytest.approx(1, abs=0.01)
    assert missing["r2_of_rank_less_of_effective"]["interval"][1] < 0


@pytest.mark.slow
def test_what_no_rung_holds_has_no_size_and_its_part_no_place_in_the_means() -> None:
    runs, databases = known(0.5, 1.0)
    first = databases["database_id"].iloc[0]
    lost = runs[~((runs["database_id"] == first) & runs["memorised"])]
    sizes = stores_numbers.found_sizes(lost).set_index("database_id")["size"]
    assert sizes[first].isna().all()
    found = stores_numbers.conclusions(lost, databases)["best"]
    assert found["parts"] == found["parts_asked"] - 1


def test_rungs_rise() -> None:
    for kind in stores.RECIPES:
        rungs = stores.ladder(kind)
        assert all(1.15 * low <= high for (low, _), (high, _) in pairwise(rungs))
