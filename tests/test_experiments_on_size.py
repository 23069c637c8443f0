"""What the experiments on size compute, beside what is known."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from capacity import Database, LayerConfig, Recipe
from capacity.database import structured_database
from capacity.layer import AttentionLayer, Compute, train
from experiments.size import (
    associations,
    frozen,
    layers,
    layers_numbers,
    measures,
    measures_numbers,
)
from experiments.size.frozen_training import (
    Tables,
    drawn_weights,
    losses,
    recalled,
    train_layers,
    train_tables,
)

CONFIG = LayerConfig(3, 2, 2, 1)


def databases(count: int = 2) -> list[Database]:
    return [
        structured_database(i, "same", 0, subjects=4, predicates=3, objects=4) for i in range(count)
    ]


@pytest.mark.parametrize("rates", [{}, {"learning_rate": 0.03, "schedule": "cosine", "beta2": 0.9}])
def test_tables_are_trained_as_layers_are(rates: dict[str, float | str]) -> None:
    recipe = Recipe(**{**rates, "epochs": 20, "stop_tau": 0})  # type: ignore[arg-type]
    facts = databases()
    weights = drawn_weights(CONFIG, facts[0].n_tokens, [0, 1], torch.float64)
    trained = train_tables(weights, Tables(facts), recipe)
    loss = losses(trained, Tables(facts))
    for i, db in enumerate(facts):
        layer = AttentionLayer(CONFIG, db.n_tokens, seed=i, dtype=torch.float64)
        done = train(layer, db, recipe, Compute("reference", dtype="float64"))
        assert loss[i].item() == pytest.approx(done.loss, abs=1e-12)
        for name, weight in layer.named_parameters():
            torch.testing.assert_close(trained[name][i], weight.detach(), rtol=0, atol=1e-12)


def test_frozen_weights_stay_and_others_move() -> None:
    recipe, held = Recipe(epochs=3, stop_tau=0), {"W_V", "W_U"}
    weights = drawn_weights(CONFIG, 11, [0, 1], torch.float64)
    trained = train_tables(weights, Tables(databases()), recipe, held)
    alone = train_layers(CONFIG, weights, databases(), recipe, held)
    for name, weight in weights.items():
        assert torch.equal(trained[name], weight) == (name in held)
        assert torch.equal(alone[name], weight) == (name in held)
        torch.testing.assert_close(trained[name], alone[name], rtol=0, atol=1e-9)


def test_a_direct_path_that_is_held_is_the_one_of_the_start() -> None:
    facts = Tables(databases())
    weights = drawn_weights(CONFIG, 11, [0, 1], torch.float64)
    direct = weights["W_E"] @ weights["W_U"]
    # at the start it makes no difference whether it is held
    torch.testing.assert_close(losses(weights, facts, direct), losses(weights, facts))
    recipe = Recipe(epochs=5, stop_tau=0)
    moved = train_tables(weights, facts, recipe)
    kept = train_tables(weights, facts, recipe, direct=direct)
    assert not torch.equal(moved["W_E"], kept["W_E"])
    # without heads the logits of a held path are those of the start
    silent = {**kept, "W_O": torch.zeros_like(kept["W_O"])}
    fresh = {**weights, "W_O": torch.zeros_like(weights["W_O"])}
    torch.testing.assert_close(losses(silent, facts, direct), losses(fresh, facts))


def test_recall_counts_a_unique_maximum() -> None:
    facts = Tables(databases())
    weights = {name: torch.zeros_like(w) for name, w in drawn_weights(CONFIG, 11, [0, 1]).items()}
    first, likely = recalled(weights, facts, 0.95)
    assert not first.any()
    assert not likely.any()


def test_every_row_of_the_table_is_asked_for_once() -> None:
    names = [frozen.row_name(row) for row in frozen.FROZEN]
    # none, each of five groups, and each pair
    assert len(names) == len(set(names)) == 1 + 5 + 10
    for one, other in frozen.QUESTIONS.values():
        known = {*names, "all but W_E", *(f"from another: {what}" for what in frozen.TRANSPLANTS)}
        assert {one, other} <= known


def test_transplants_take_the_heads_of_another_database(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Any, Any, set[str]]] = []

    def noted(config: Any, weights: Any, dbs: Any, recipe: Any, frozen: Any = ()) -> Any:
        found = train_layers(config, weights, dbs, recipe, frozen)
        calls.append((weights, found, set(frozen)))
        return found

    monkeypatch.setattr(frozen, "train_layers", noted)
    rows = frozen.rows_of_task(("own objects", 2, "best", "from another: heads, W_U", 3, 30))
    assert len(rows["accuracy_argmax"]) == len(set(rows["database_id"])) == 3
    (start, donors, none), (given, _, held) = calls
    assert not none
    assert held == {"W_Q", "W_K", "W_V", "W_O", "W_U"}
    for name in held:
        for i in range(3):
            assert torch.equal(given[name][i], donors[name][(i + 1) % 3]), name
    # trained anew, from another start
    assert not torch.equal(given["W_E"], start["W_E"])


def known_law(exponents: tuple[float, ...], seed: int = 0) -> pd.DataFrame:
    """Bisections of layers whose half size is a product of powers, times a layer's own factor."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, object]] = []
    for layer in layers.LAYERS:
        sizes = [getattr(layer, name) for name in layers_numbers.SIZES]
        half = 1.5 * np.prod(np.power(sizes, exponents)) * np.exp(0.1 * rng.normal())
        low, high = 0, len(layers.SIZES)
        while low < high:
            middle = (low + high - 1) // 2
            size = layers.SIZES[middle]
            done = rng.random(20) < 1 / (1 + (size / half) ** 6)
            rows += [
                {
                    "n_asked": size, "n_triples": size, "database_id": f"{size}-{i}",
                    "layer_id": layer.name, **dict(zip(layers_numbers.SIZES, sizes, strict=True)),
                    "n_parameters": layer.n_parameters,
                    "n_embedding_parameters": layer.n_embedding_parameters(size),
                    "layer_rank_bound": layer.d_model + layer.n_heads * layer.d_head_vo,
                    "status": "completed", "accuracy_p95": float(ok),
                }
                for i, ok in enumerate(done)
            ]  # fmt: skip
            low, high = (middle + 1, high) if done.mean() >= 0.5 else (low, middle)
    return pd.DataFrame(rows)


@pytest.mark.slow
def test_a_law_of_layers_that_is_known_is_found() -> None:
    true = (1.91, 2.14, 0.79, -0.61)
    found = layers_numbers.conclusions(known_law(true).assign(kind="best"))["best"]
    for value, one in zip(true, found["exponents"].values(), strict=True):
        assert one["interval"][0] <= value <= one["interval"][1]
    forms = found["forecasts"]["forms"]
    best = max(forms, key=lambda form: forms[form]["log_likelihood"]["mean"])
    assert best in (layers_numbers.EACH, "exponents found before")
    # 2 ** (2.14 - 0.79 + 0.61): heads of half the sizes at equal (9) and parameters
    matched = found["matched_layers"]
    assert matched["more_heads_are_better"] == matched["told"] > 10
    assert matched["median_factor_a_doubling"] == pytest.approx(2**1.96, rel=0.25)


def test_bisections_that_are_cut_short_have_the_size_that_all_runs_give() -> None:
    runs = known_law((1.91, 2.14, 0.79, -0.61))
    shares = runs.groupby(["layer_id", "n_asked"])["accuracy_p95"].mean()
    for row in layers_numbers.sizes_of(runs).to_dict("records"):
        if row["above"] is not None and not np.isnan(row["above"]):
            assert shares[row["layer_id"], row["above"]] >= 0.5
        if row["below"] is not None and not np.isnan(row["below"]):
            assert shares[row["layer_id"], row["below"]] < 0.5


@pytest.mark.slow
def test_the_measure_that_decides_has_the_largest_effect() -> None:
    """Runs that memorise by one measure alone, of databases in which two go together."""
    rng = np.random.default_rng(0)
    names = [f"db{i}" for i in range(120)]
    bits = np.exp(rng.normal(size=120))
    columns = list(measures_numbers.MEASURES.values())
    other = {name: np.round(50 * np.exp(0.5 * np.log(bits) + rng.normal(size=120)))
             for name in columns}  # fmt: skip
    databases = pd.DataFrame({
        "database_id": names, "block": "copies", "structure": "same", "copies": 0.0, "n_triples": 9,
        **other, "description_length": bits,
    })  # fmt: skip
    rows = [
        {"database_id": name, "layer_id": layer, "kind": "best", "seed": seed,
         "accuracy_argmax": float(rng.random() < 1 / (1 + np.exp(2 * np.log(bits[i]) - shift))),
         "accuracy_p95": 0.0}
        for (i, name), (layer, shift), seed in product(
            enumerate(names), (("small", -1.0), ("large", 1.0)), range(3))
    ]  # fmt: skip
    found = measures_numbers.conclusions(pd.DataFrame(rows), databases)
    effects = found["effects"]["copies"]["best"]["argmax"]
    low, high = effects["together"]["description length"]["interval"]
    # the log odds fall by 2 a unit of the logarithm
    assert low <= -2 * np.log(bits).std(ddof=1) <= high < 0
    assert max(effects["gain_alone"], key=lambda m: effects["gain_alone"][m]["mean"]) == (
        "description length"
    )
    for name, one in effects["together"].items():
        if name != "description length":
            assert one["interval"][0] <= 0 <= one["interval"][1]


def test_cells_of_the_factorial_have_fixed_numbers_and_seeds_of_their_own() -> None:
    cells = measures.cells()
    assert len(cells) == len(set(cells)) == 4 * 4 + 1 + 5 + 2 * 4 + 1
    for block, kind, copies in cells[::4]:
        db = measures.database_of(block, kind, copies, 0)
        shape = measures.BLOCKS[block].shape
        assert db.shape == tuple(shape.values())
        assert db.n_triples == shape["subjects"] * shape["predicates"]
        assert db != measures.database_of(block, kind, copies, 1)


def test_the_layer_of_dana_and_others_is_that_of_their_modules() -> None:
    """Theirs is a sum of torch's modules of one head each, on compressed tokens."""
    d, heads, d_h = 4, 3, 2
    w = associations.their_weights(d, heads, d_h, torch.Generator().manual_seed(0))
    first, second = torch.arange(50)[:, None], torch.arange(50)[None]
    pairs = torch.stack(torch.broadcast_tensors(first, second), dim=-1).reshape(-1, 2)
    embedded = w["E"][pairs]
    inside = embedded @ w["compress"] + w["P"]
    causal = torch.triu(torch.ones(2, 2, dtype=torch.bool), diagonal=1)
    summed = torch.zeros_like(inside)
    for h in range(heads):
        module = torch.nn.MultiheadAttention(d_h, 1, bias=False, batch_first=True)
        with torch.no_grad():
            module.in_proj_weight.copy_(torch.cat([w[name][h].T for name in "QKV"]))
            module.out_proj.weight.copy_(w["O"][h].T)
        summed = summed + module(inside, inside, inside, attn_mask=causal)[0]
    logits = (embedded + summed @ w["back"]) @ w["U"]
    torch.testing.assert_close(
        associations.their_logits(w).reshape(-1, 50), logits[:, 1], rtol=0, atol=1e-5
    )
