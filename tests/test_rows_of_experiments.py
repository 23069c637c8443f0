"""Rows of the experiments' tables, computed again, are those that were committed.

One task of each experiment whose whole smoke run takes long (`LONGEST` in test_experiments.py),
with the options of the real run wherever its time allows.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from capacity.evaluator import add_size_columns
from capacity.transformer import capture
from experiments.atlas import run as atlas
from experiments.common.harness import committed
from experiments.common.models import Smiles, minilm, reaction_bert
from experiments.common.texts import reactions, tweet_pairs
from experiments.completion import run as completion
from experiments.decomposition import measures as decomposition
from experiments.effective_attention import measures as attention
from experiments.effective_attention import run as effective_attention
from experiments.facts import capacity_law
from experiments.size import layers, stores

pytestmark = pytest.mark.slow
# of tables, which are stored in single precision; accuracies by other instructions may differ
ROUNDED, TRAINED = {"rtol": 1e-4, "atol": 1e-4}, {"rtol": 1e-4, "atol": 0.02}
# pages keep multiples of 2^-13
COARSE = {"rtol": 1e-4, "atol": 2e-4}


def assert_rows(
    found: pd.DataFrame, kept: pd.DataFrame, within: dict[str, float] = ROUNDED
) -> None:
    """Compare all rows and columns, in the types that tables are stored in."""
    assert set(found) == set(kept)
    assert len(found) == len(kept) > 0
    ready = found.astype(kept.dtypes.to_dict())[[*kept]].reset_index(drop=True)
    pd.testing.assert_frame_equal(ready, kept.reset_index(drop=True), check_exact=False, **within)  # type: ignore[call-overload]


def of(table: pd.DataFrame, **values: Any) -> pd.DataFrame:
    """The rows with those values."""
    return table[np.logical_and.reduce([table[key] == value for key, value in values.items()])]


@pytest.mark.parametrize("code", ["001/010/200", "111/123/213", "12/21"])
def test_atlas_of_databases(code: str) -> None:
    kept = of(committed("atlas", "databases"), code=code)
    assert_rows(pd.DataFrame([atlas.of_database(code)]), kept)


def test_atlas_of_tensors() -> None:
    kept = committed("atlas", "tensors").iloc[[3, 200]]
    assert_rows(pd.DataFrame(map(atlas.of_tensor, kept["number"].tolist())), kept)


def test_capacity_law(monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[Any] = []
    monkeypatch.setattr(
        capacity_law, "sweep", lambda _name, plan: plans.append(plan) or pd.DataFrame()
    )
    assert capacity_law.run(False).keys() == {"plain-larger", "best-larger"}
    kept = add_size_columns(committed("capacity_law", "best-larger"))
    for plan in plans:
        asked = {(run.database_id, run.layer.name, run.database.n_triples) for run in plan.runs}
        assert asked == set(
            kept[["database_id", "layer_id", "n_triples"]].itertuples(index=False, name=None)
        )
    assert [plan.runs[0].recipe.schedule for plan in plans] == ["constant", "cosine"]


def _completed(number: int, epochs: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Runs of the first and the last layer by either recipe, beside those that are kept."""
    found = completion.rows_of_task((number, 0, epochs, 5))
    if epochs == completion.EPOCHS:
        kept = of(committed("completion", "splits"), database_id=f"{number}-0")
        assert_rows(pd.DataFrame(found["splits"]), kept)
    runs = pd.DataFrame(found["runs"])
    kept = of(committed("completion", "runs"), database_id=f"{number}-0")
    kept = kept[kept["layer_id"].isin(runs["layer_id"])]
    # what isn't counted there
    assert kept[list(set(kept) - set(runs))].isna().all(axis=None)
    known = ["held_out", "layer_id", "kind", "taught", "until", "n_all_parameters", "n_facts",
             *(name for name in runs if str(name).startswith("pairs_"))]  # fmt: skip
    assert_rows(runs[known], kept[known])
    return runs.drop(columns=["database_id", *known]), kept


# objects of their own and empty pairs; small ones, whose ranks are searched longest
@pytest.mark.parametrize("block", ["own objects, relabelled 1, density 0.5", "small, same 0"])
def test_completion(block: str) -> None:
    cells = completion.CELLS
    number = next(i for i, cell in enumerate(cells) if cell.name.startswith(block))
    runs, kept = _completed(number, completion.EPOCHS)
    # rounding of other instructions, over thousands of steps, leaves means alone
    pd.testing.assert_series_equal(
        runs.mean(), kept[[*runs]].astype(float).mean(), rtol=0.1, atol=0.05, check_dtype=False
    )


def test_completion_counts_among_all_tokens_where_asked() -> None:
    runs, _ = _completed(0, 200)
    assert (runs["artefacts_tokens_argmax"] >= runs["artefacts_roles_argmax"]).all()
    assert (runs["artefacts_tokens_p50"] >= runs["artefacts_tokens_p99"]).all()


@cache
def berts() -> tuple[Any, Any]:
    return reaction_bert("pretrained"), reaction_bert("finetuned")


def test_decomposition() -> None:
    model, _ = berts()
    texts = Smiles().encode(decomposition.reactions(decomposition.SIZES[1] // 4))
    groups = [[decomposition.measure(each, texts)] for each in berts()]
    here = {"group": 0, "model": decomposition.BEFORE}
    assert_rows(
        decomposition.importance(groups[0]).assign(model=decomposition.BEFORE),
        of(committed("decomposition", "importance"), **here),
    )
    assert_rows(
        decomposition.correlation(*groups), of(committed("decomposition", "correlation"), group=0),
        {"atol": 1e-3, "rtol": 0},
    )  # fmt: skip
    few = {key: x[:10] for key, x in texts.items()}
    kept = of(committed("decomposition", "ranks"), model=decomposition.BEFORE)
    assert_rows(decomposition.ranks(model, few).assign(model=decomposition.BEFORE), kept)


def test_decomposition_fits_halves_and_means_heads() -> None:
    model, _ = berts()
    texts = Smiles().encode(decomposition.reactions(16))
    # two layers of twelve
    groups = [
        replace(whole, moments=whole.moments[:2])
        for one in decomposition.in_groups(texts, 4, "", lambda *_: None)
        for whole in [decomposition.measure(model, one)]
    ]
    table = decomposition.linear(groups)
    assert set(table) | {"model"} == set(committed("decomposition", "linear"))
    scored = table.groupby(["layer", "tokens_fitted"])["group"].agg(list)
    # two fits a layer, each scored on all groups
    assert (scored.map(sorted).map(tuple) == (0, 1, 2, 3)).all()
    assert len(scored) == 2 * len(groups[0].moments)
    # of hardly more tokens than features
    means = table.groupby("scored")["r2"].mean()
    assert means["in sample"] > 0.9 > means["held out"]
    of_heads = decomposition.heads(groups).pivot(index="layer", columns="head", values="importance")
    expected = torch.stack([group.heads for group in groups]).mean(0)
    np.testing.assert_allclose(of_heads.to_numpy(), expected.numpy(), rtol=1e-5)


def test_decomposition_asks_the_models_own_head() -> None:
    model, _ = berts()
    written = decomposition.reactions(2)
    table, asked = decomposition.answer(model, Smiles(), written, 2, "", lambda *_: None)
    kept = committed("decomposition", "default")
    assert set(table) | {"text"} == set(kept)
    assert set(table["sum"]) == set(kept["sum"])
    assert set(table["group"]) == {0, 1} == set(asked.texts.tolist())
    n = table.pivot(index=["sum", "group"], columns="places", values="n")
    assert (n["masked"] <= n["chosen"]).all()
    assert n["chosen"].groupby("sum").sum().eq(len(asked.targets)).all()
    # nearly all is known from the whole, and nothing from the constant
    right = table.groupby("sum")["hits"].sum() / table.groupby("sum")["n"].sum()
    assert right["i + h + f + c"] > 0.8 > 0.5 > right["c"]


def test_decomposition_learns_what_a_term_says() -> None:
    rng = torch.Generator().manual_seed(0)
    targets = torch.randint(3, (4000,), generator=rng) + 5
    terms = torch.randn(4000, 4, 8, generator=rng)
    # heads say it, and the others nothing
    terms[:, 1] = torch.eye(8)[targets - 5] * 5 + 0.1 * terms[:, 1]
    texts = torch.arange(4000) // 4
    learned = decomposition.learn(decomposition.Questions(terms, targets, texts), 0, 10)
    assert set(learned) | {"text"} == set(committed("decomposition", "learned"))
    by = learned.set_index("sum")
    assert by.loc["h", "accuracy"] == 1
    assert (by.loc[["i", "f", "c", "i + f + c"], "accuracy"] < 0.7).all()
    # of a thousand texts of four
    assert by.iloc[0][["n_train", "n_test", "n_words"]].tolist() == [3200, 400, 3]


def _first_sentence(tables: dict[str, pd.DataFrame], texts: str) -> None:
    where = {"texts": texts, "sentence": 0}
    for key in ("shapes", "leverage"):
        kept = of(committed("effective_attention", key), **where)
        assert_rows(tables[key].assign(**where), kept, COARSE)
    for key, values in (("shares", ["share", "weight"]), ("final", ["largest"])):
        by = [*effective_attention.CELL, "sentence"]
        means = tables[key].assign(**where).groupby(by, sort=False, as_index=False)[values].mean()
        kept = of(committed("effective_attention", f"{key}-by-sentence"), **where)
        assert_rows(means, kept, COARSE)


def test_effective_attention() -> None:
    model, tokenizer = minilm()
    sentence = next(tweet_pairs(tokenizer, 1, 64))
    with torch.no_grad():
        at = capture(model, sentence.inputs)
        tables = attention.of_sentence(sentence, at)
        _first_sentence(tables, effective_attention.SHORT)
        padding = attention.with_padding(model, tokenizer, 1)
        assert_rows(padding, of(committed("effective_attention", "padding"), sentence=0), COARSE)
        # of one sentence another head may attend most
        shares = tables["shares"].assign(sentence=0)
        shown = attention.example(shares, at, sentence)
        assert set(shown) == set(committed("effective_attention", "example"))
        assert shown.groupby("row")["standard"].sum().to_numpy() == pytest.approx(1, abs=1e-5)
        formula = next(reactions(1))
        caught = [capture(each, formula.inputs) for each in berts()]
        _first_sentence(attention.of_sentence(formula, caught[0]), effective_attention.PRETRAINED)
        assert_rows(
            attention.cosines(*caught).assign(sentence=0),
            of(committed("effective_attention", "cosine"), sentence=0), COARSE,
        )  # fmt: skip
        taken = attention.times(model, [sentence.inputs], 1).assign(texts=effective_attention.SHORT)
    assert set(taken) == set(committed("effective_attention", "times"))
    assert taken["way"].tolist() == ["standard", "plain", "full_svd"]
    assert (taken["seconds"] > 0).all()


def test_law_of_layers() -> None:
    layer = layers.LAYERS[0].name
    found = pd.DataFrame(layers.bisection_of(("best", layer, 2, 2000))["runs"])
    kept = of(committed("law_of_layers", "runs"), layer_id=layer, kind="best")
    # of twenty databases of a size; here of the first one or two
    both = found.merge(kept[["n_asked", "seed"]], on=["n_asked", "seed"])
    assert len(both) >= 4
    kept = both[["n_asked", "seed"]].merge(kept, on=["n_asked", "seed"])
    assert_rows(both, kept, TRAINED)


@pytest.mark.parametrize("holds", [True, False])
def test_a_size_is_held_by_ten_of_twenty_and_not_by_nine(
    holds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def row_of(_layer: object, size: int, _seed: int, _recipe: object) -> dict[str, Any]:
        return {"n_asked": size, "accuracy_argmax": float(not holds), "accuracy_p95": float(holds)}

    monkeypatch.setattr(layers, "row_of", row_of)
    found = pd.DataFrame(layers.bisection_of(("best", layers.LAYERS[0].name, 20, 0))["runs"])
    asked = found.groupby("n_asked").size()
    # ten that hold it decide, or eleven that don't
    assert set(asked) == {10 if holds else 11}
    assert (layers.SIZES[-1] if holds else layers.SIZES[0]) in asked.index


def test_stores_with_missing_pairs() -> None:
    found = stores.rows_of_task(("missing", "countries", 0.9, 0, 2000))
    for key, within in (("databases", ROUNDED), ("runs", TRAINED)):
        rows, kept = pd.DataFrame(found[key]), committed("stores", key)
        kept = kept[kept["database_id"].isin(rows["database_id"])]
        assert_rows(rows, kept, within)


def test_stores_and_their_controls() -> None:
    found = stores.rows_of_task(("part", "countries", 50, 0, 2000))
    for key, within in (("databases", ROUNDED), ("runs", TRAINED)):
        rows, kept = pd.DataFrame(found[key]), committed("stores", key)
        kept = kept[kept["database_id"].isin(rows["database_id"])]
        assert_rows(rows, kept[[*rows]], within)
