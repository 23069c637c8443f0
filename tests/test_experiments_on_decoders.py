"""Architectures that the experiments on decoders compare, and the rules of their verdicts."""

from __future__ import annotations

from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from capacity.evaluator import mean_interval
from capacity.layer import Decoder, DecoderConfig, LayerConfig
from experiments.common import conclusions
from experiments.decoders import cells, comparisons, findings, findings_numbers, sizes, trainings


@pytest.fixture
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals of few resamples: what is asserted has no spread, or is a mean."""
    monkeypatch.setattr(conclusions, "mean_interval", partial(mean_interval, n_resamples=20))


NAMES = [name for name in cells.ARCHITECTURES if name != cells.MLP_ALONE]


@pytest.mark.parametrize("budget", trainings.BUDGETS)
@pytest.mark.parametrize("shape", cells.SHAPES)
def test_plain_layers_have_as_many_parameters(shape: str, budget: cells.Budget) -> None:
    for name in NAMES:
        plain = cells.plain_equal(name, shape, budget)
        wanted = cells.parameters_of(cells.decoder_of(name, shape), budget)
        if budget == "total":
            assert plain is not None, name
        if plain is not None:
            # counted by the configuration, where the search has a formula
            assert abs(cells.parameters_of(plain, budget) / wanted - 1) <= cells.WITHIN, name


@pytest.mark.parametrize("shape", cells.SHAPES)
def test_what_adds_few_parameters_is_compared_with_its_shape(shape: str) -> None:
    for name in ("plain", "scale", "rotary positions", "learned positions", "layer norm"):
        assert cells.plain_equal(name, shape, "total") == cells.SHAPES[shape]


def test_databases_of_a_number_are_nested_and_have_all_tokens() -> None:
    databases = [cells.database_of(size, 1) for size in cells.SIZES]
    facts = [{tuple(map(str, triple)) for triple in db} for db in databases]
    for size, db in zip(cells.SIZES, databases, strict=True):
        assert db.n_triples == size
        assert db.is_functional
        assert db.shape == (cells.SUBJECTS, cells.PREDICATES, cells.OBJECTS)
        assert db.n_tokens == cells.TOKENS
    assert all(one < other for one, other in pairwise(facts))


def test_mlps_alone_dont_see_the_subject() -> None:
    config = cells.decoder_of(cells.MLP_ALONE, next(iter(cells.SHAPES)))
    assert isinstance(config, DecoderConfig)
    decoder = Decoder(config, cells.TOKENS, seed=0)
    first, second = decoder(torch.tensor([[0, 7], [1, 7]]))[:, -1]
    assert torch.equal(first, second)


def test_of_equal_learning_rates_the_smallest_is_chosen() -> None:
    rows = [
        {"kind": kind, "architecture": "plain", "rate": rate, "share_of_starts": share,
         "accuracy_p95": recalled}
        for kind, shares in {"best": (0.5, 0.5, 0.25), "plain": (0.0, 0.25, 0.5)}.items()
        for rate, share in zip(trainings.RATES[kind], shares, strict=True)
        # a start that diverged recalls nothing
        for recalled in (1.0, np.nan)
    ]  # fmt: skip
    assert trainings.rates_of(pd.DataFrame(rows)) == {
        "best": {"plain": 0.01}, "plain": {"plain": 0.01},
    }  # fmt: skip


def made_tables(reach: dict[str, int], share: dict[str, float]) -> dict[str, pd.DataFrame]:
    """Tables in which each layer reaches a size of the grid, and a share of its starts holds."""
    named = list(reach)
    rows: dict[str, list[dict[str, Any]]] = {"sizes": [], "starts": []}
    for kind, shape, number in product(trainings.RECIPES, cells.SHAPES, range(1)):
        for name, equal in product(named, (None, "total")):
            config = cells.decoder_of(name, shape)
            if equal:
                plain = cells.plain_equal(name, shape, "total")
                assert plain is not None
                config = plain
            of = "plain" if isinstance(config, LayerConfig) else name
            for frozen in (False, True):
                common = {"kind": kind, "layer_id": config.name, "frozen": frozen,
                          "database_id": f"{number}"}  # fmt: skip
                rows["sizes"] += [
                    {**common, "size": size, "held_by_any": size <= reach[of]}
                    for size in cells.SIZES
                ]
                gain = {"plain": 0.25, "layer norm": 0.0}.get(of, 0.0) if frozen else 0.0
                rows["starts"] += [
                    {**common, "size": size, "share_of_starts": share[of] + gain}
                    for size in trainings.asked_sizes(name, shape)
                ]
    tables = {key: pd.DataFrame(each).drop_duplicates() for key, each in rows.items()}
    tuning = [
        {"kind": kind, "architecture": name, "rate": rate, "share_of_starts": 0.0,
         "accuracy_p95": 0.0}
        for kind, name in product(trainings.RECIPES, named)
        for rate in trainings.RATES[kind]
    ]  # fmt: skip
    tables = {"tuning": pd.DataFrame(tuning), **tables}
    tried = {key: table.assign(starts_tried=1) for key, table in tables.items()}
    return {**tried, "costs": pd.DataFrame({"cpu_seconds": [1.0, 2.0]})}


@pytest.mark.usefixtures("few_resamples")
def test_verdicts_are_those_of_tables_that_were_made_for_them() -> None:
    small, large = cells.SIZES[4], cells.SIZES[8]
    reach = {"plain": small, "layer norm": small, "biases": small,
             **dict.fromkeys(comparisons.MLPS, small)}  # fmt: skip
    share = {"plain": 0.25, "layer norm": 0.25, "biases": 0.25,
             **dict.fromkeys(comparisons.MLPS, 0.5)}  # fmt: skip
    found = sizes.numbers(made_tables(reach, share))
    assert found["cpu_seconds"] == 3
    best = found["recipes"]["best"]
    assert best["MLPs"]["gain"]["mean"] == pytest.approx(0.25)
    assert best["MLPs"]["total"]["mean"] == pytest.approx(1)
    assert best["freezing"]["plain"]["gain"]["mean"] == pytest.approx(0.25)
    assert all(
        verdict == "holds here"
        for each in found["verdicts"].values()
        for verdict in (each.values() if isinstance(each, dict) else [each])
    )
    # twice the size, no more starts, and biases that change much
    reach |= {**dict.fromkeys(comparisons.MLPS, large), "biases": large}
    share |= dict.fromkeys(comparisons.MLPS, 0.25)
    found = sizes.numbers(made_tables(reach, share))
    assert found["recipes"]["plain"]["MLPs"]["total"]["mean"] == pytest.approx(2, rel=0.02)
    assert found["verdicts"]["an MLP raises reach by at most 1.5"]["best"] == "not seen here"
    assert found["verdicts"]["an MLP raises reliability"]["best"] == "not seen here"
    assert found["verdicts"]["layer norms and biases change little"] == "not seen here"


def test_a_bisection_beyond_the_grid_is_told() -> None:
    runs = pd.DataFrame({"size": cells.SIZES, "held_by_any": True})
    assert comparisons.half_of(runs) == (cells.SIZES[-1], 1)
    assert comparisons.half_of(runs.assign(held_by_any=False)) == (cells.SIZES[0], -1)


def test_the_additive_part_explains_additive_logits_alone() -> None:
    rng = np.random.default_rng(0)
    # a term of the subject and one of the predicate, for each object
    additive = rng.normal(size=(4, 1, 5)) + rng.normal(size=(1, 3, 5))
    assert np.allclose(findings.additive_part(additive), additive)
    assert findings.share_of_variation(additive, additive) == pytest.approx(1)
    crossed = additive + rng.normal(size=(4, 3, 5))
    part = findings.additive_part(crossed)
    # two-way means are the orthogonal projection: what they leave has means of zero
    assert np.allclose((crossed - part).mean(0), 0)
    assert np.allclose((crossed - part).mean(1), 0)
    assert 0 < findings.share_of_variation(part, crossed) < 1


def test_splits_have_equal_parameters() -> None:
    for d, splits in findings.SPLITS.items():
        for name in findings_numbers.ASKED:
            configs = [
                findings.Task("splits", name, "", (d, *split), 0, 0.03, 1).config
                for split in splits
            ]
            one, other = (config.n_parameters for config in configs)
            # queries and keys have a bias each, and values one
            assert abs(one - other) == (2 * (d - 2) if name == "all" else 0)


@pytest.mark.usefixtures("few_resamples")
def test_the_cost_of_freezing_is_what_is_recalled_less() -> None:
    recalled = {"nothing": 1.0, "attention": 0.75, "MLP": 0.5, "values": 0.9,
                "queries and keys": 1.0}  # fmt: skip
    rows = [
        {"architecture": name, "layer_id": shape, "database_id": number, "frozen": group,
         "accuracy_p95": value, "share_of_starts": value}
        for name in findings_numbers.WITH_MLP
        for shape, number in product("ab", "01")
        for group, value in recalled.items()
    ]  # fmt: skip
    found = findings_numbers.costs_of_freezing(pd.DataFrame(rows))["with an MLP"]
    assert found["MLP"]["mean"] == pytest.approx(0.5)
    assert found["MLP less attention"]["mean"] == pytest.approx(0.25)
    assert found["reliability"]["nothing"]["mean"] == pytest.approx(1)
