"""Sweeps over decoders: keys of [layers], columns of the table, the same bytes after a kill."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from capacity.errors import InvalidArgumentError, SweepError
from capacity.evaluator import accuracy_grid
from capacity.layer import DecoderConfig, LayerConfig
from capacity.report import sweep_report
from capacity.sweep import load, make_plan, run_sweep, runs_schema, train_run
from capacity.sweep.grammar.layers import OPPOSED, TOO_WIDE, omitted_layers
from capacity.sweep.training import trained

DATABASES = {"synthetic": {"count": 2, "seed": 0, "max_triples": 12}}
LAYERS: dict[str, Any] = {
    "d_model": [4], "n_layers": [1, 2], "mlp": [0, 8], "norm": ["none", "rms"],
}  # fmt: skip


def config(**layers: Any) -> dict[str, Any]:
    """A plan of few epochs."""
    return {"databases": DATABASES, "layers": layers or LAYERS, "recipe": {"epochs": 10},
            "runs": {"starts": 2}}  # fmt: skip


def test_a_table_has_the_fields_and_the_counts(tmp_path: Path) -> None:
    plan = make_plan(config())
    assert len(plan.runs) == 16
    assert {run.engine for run in plan.runs} == {"tape"}
    run_sweep(plan, tmp_path / "out")
    table = load(tmp_path / "out")
    assert [*table] == runs_schema(layers=DecoderConfig).names
    assert table["mlp"].nunique() == table["norm"].nunique() == 2
    assert table["layer_rank_bound"].isna().all()
    assert (table["n_parameters"]
            == table[["n_parameters_heads", "n_parameters_mlp", "n_parameters_norms"]].sum(axis=1)
            ).all()  # fmt: skip
    assert set(table["attention"]) == {"1", "11"}
    assert (table["starts_tried"] == 2).all()


def test_a_page_lists_decoders_where_layers_have_grids(tmp_path: Path) -> None:
    run_sweep(make_plan(config()), tmp_path / "out")
    table = load(tmp_path / "out")
    page = sweep_report(tmp_path / "out", tau=0.75)
    assert "What each decoder holds" in page
    assert "which decoders don't have" in page.replace("&#39;", "'")
    assert all(name in page for name in table["layer_id"])
    assert "Accuracy grid," not in page
    with pytest.raises(InvalidArgumentError, match="these runs are of decoders"):
        accuracy_grid(table)
    with pytest.raises(InvalidArgumentError, match="threshold that the runs were scored at"):
        sweep_report(tmp_path / "out", tau=0.8)


NOT_PLAIN: list[dict[str, Any]] = [
    LAYERS,
    {"d_model": [4], "n_heads": [2], "norm": ["rms"], "bias": [True]},
]


@pytest.mark.parametrize("layers", NOT_PLAIN, ids=["decoders", "layers with norm and bias"])
def test_a_sweep_trains_and_scores_them_without_torch(layers: Any, tmp_path: Path) -> None:
    code = (
        "import sys; from capacity.sweep import make_plan, run_sweep; "
        f"run_sweep(make_plan({config(**layers)!r}), {str(tmp_path / 'out')!r}); "
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == "False"
    assert load(tmp_path / "out")["accuracy_argmax"].notna().all()


@pytest.mark.parametrize("layers", NOT_PLAIN, ids=["decoders", "layers with norm and bias"])
def test_without_torch_the_same_weights_are_trained(
    layers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_plan(config(**layers)).runs[-1]
    row, layer = train_run(run)
    monkeypatch.setattr(trained, "trains_weights", lambda *_: False)
    row_of_layer, same = train_run(run)
    weights = dict(same.named_parameters())
    assert all(bool((p == weights[name]).all()) for name, p in layer.named_parameters())
    scores = [name for name, value in row.items() if isinstance(value, float)]
    assert [row[name] for name in scores] == pytest.approx(
        [row_of_layer[name] for name in scores], rel=1e-4, abs=1e-6, nan_ok=True
    )


@pytest.mark.slow
def test_an_interrupted_sweep_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    plan = make_plan(config())
    run_sweep(plan, tmp_path / "whole", workers=2)

    def interrupt(what: str, done: int, _total: int, _left: float | None) -> None:
        if what == "runs" and done > 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_sweep(plan, tmp_path / "parted", progress=interrupt)
    run_sweep(plan, tmp_path / "parted")
    whole, parted = (tmp_path / name / "runs.parquet" for name in ("whole", "parted"))
    assert whole.read_bytes() == parted.read_bytes()


def test_a_section_with_the_keys_of_layers_alone_describes_layers() -> None:
    plan = make_plan(config(d_model=[4], n_heads=[1], bias=[True]))
    assert isinstance(plan.runs[0].layer, LayerConfig)
    assert plan.runs[0].engine == "tape"


def test_options_that_exclude_one_another_are_omitted_and_counted() -> None:
    asked = config(d_model=[2, 4], d_head_vo=[3], mlp=[0, 4], gated=[False, True])
    assert len(make_plan(asked).runs) == 2 * 3
    assert omitted_layers(asked) == {TOO_WIDE: 4, OPPOSED: 1}


WRONG: dict[str, dict[str, Any]] = {
    "unknown key `n_layer`": {"d_model": [4], "mlp": [4], "n_layer": [2]},
    "unknown key `layer_norm`": {"d_model": [4], "mlp": [4], "layer_norm": [True]},
    "`n_layers` must be an integer of at least 1; got 0": {"d_model": [4], "n_layers": [0]},
    "`mlp` must be an integer": {"d_model": [4], "mlp": ["many"]},
    "`norm` must be": {"d_model": [4], "norm": ["batch"]},
    "no combination of its values is one": {"d_model": [2], "d_head_vo": [3], "mlp": [1]},
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_values_are_refused(message: str) -> None:
    with pytest.raises(SweepError) as error:
        make_plan(config(**WRONG[message]))
    assert message in str(error.value)
