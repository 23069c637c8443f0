"""The columns of the runs table, and tables of schema 2 read as ones of today."""

import json
import shutil
from dataclasses import fields
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from capacity.errors import SweepError
from capacity.evaluator import accuracy_grid
from capacity.layer import LayerConfig, Recipe
from capacity.sweep import RUNS_SCHEMA, compact, load, make_plan, run_sweep, runs_schema, train_run
from capacity.sweep.storage.row_schema import SCHEMA_2, scored_columns
from capacity.sweep.storage.runs_table import read_rows, write_table

# four runs that the code of schema 2 has done, by the engine that it called "graph"
OLD = Path(__file__).parent / "schema-2"
CONFIG: dict[str, Any] = {
    "databases": {"synthetic": {"count": 1, "seed": 0, "max_triples": 12}},
    "layers": {
        "d_model": [2], "n_heads": [1], "d_head_qk": [1], "d_head_vo": [1],
        "scale": [True, False], "bias": [True, False],
    },
    "recipe": [{"epochs": 4, "batch_size": 3}, {"epochs": 5, "schedule": "cosine"}],
    "runs": {"seeds": [3, 4], "taus": [0.6, 0.999]},
}  # fmt: skip


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep")
    run_sweep(make_plan(CONFIG), folder)
    return folder


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return Path(shutil.copytree(OLD, tmp_path / "old"))


def test_every_field_of_layer_and_recipe_is_a_column_that_sql_takes_without_quotes(
    done: Path,
) -> None:
    table = load(done)
    layer = [each.name for each in fields(LayerConfig)]
    # `zipf` is in the text of the recipe alone, so that tables without it keep their bytes
    recipe = [f"recipe_{each.name}" for each in fields(Recipe) if each.name != "zipf"]
    assert {*layer, *recipe, "accuracy_p60", "accuracy_p999", "scale_p999"} <= set(table.columns)
    query = f"select {', '.join(table.columns)} from '{done}/runs.parquet' order by run_key"
    assert duckdb.connect().execute(query).fetchdf().columns.tolist() == table.columns.tolist()
    counted = table.query("scale and not bias and recipe_epochs == 5 and seed == 4")
    # one database, size and recipe
    assert len(counted) == 1


def test_rows_of_a_run_and_of_its_table_have_the_same_columns_in_order(done: Path) -> None:
    plan = make_plan(CONFIG)
    rows = load(done).set_index("run_key")
    for run in plan.runs[::5]:
        row, _ = train_run(run)
        assert list(row) == runs_schema(plan.taus).names
        there = rows.loc[run.key]
        for name, value in run.layer.to_dict().items():
            assert row[name] == there[name] == value
        for name, value in {**run.recipe.to_dict(), "frozen": ""}.items():
            assert row[f"recipe_{name}"] == there[f"recipe_{name}"] == value
        assert json.loads(row["recipe"]) == run.recipe.to_dict()
        assert row["epochs"] <= row["recipe_epochs"]
        # a probability above a half is asked for less than one of 0.6, and that less than 0.999
        assert row["accuracy_p50"] >= row["accuracy_p60"] >= row["accuracy_p999"]


def test_the_rank_of_a_layer_with_biases_has_no_bound_and_is_null(done: Path) -> None:
    table = load(done)
    assert (table["layer_rank_upper"].isna() == table["bias"]).all()
    column = pq.read_table(done / "runs.parquet")["layer_rank_upper"]
    assert column.type == pa.int64()
    assert column.null_count == table["bias"].sum() > 0


def test_a_null_that_was_written_over_is_found(done: Path, tmp_path: Path) -> None:
    table = read_rows(done / "runs.parquet", most=100)
    of = (table.schema.metadata or {})[b"of"].decode()
    filled = table["layer_rank_upper"].fill_null(0)
    i = table.column_names.index("layer_rank_upper")
    other = table.set_column(i, table.schema.field(i), filled)
    pq.write_table(other, tmp_path / "runs.parquet")
    with pytest.raises(SweepError, match="rows aren't those of its digest"):
        read_rows(tmp_path / "runs.parquet", most=100, of=of)


def test_a_run_that_diverged_keeps_its_configuration_and_has_no_score() -> None:
    # a column named `scale` begins like `scale_p95`, and is none of the scores
    wild = {**CONFIG, "recipe": {"epochs": 20, "learning_rate": 1e30}}
    runs = [run for run in make_plan(wild).runs if run.layer.scale]
    row, _ = train_run(runs[0])
    assert row["status"] == "diverged"
    assert row["scale"] is True
    scores = scored_columns(runs[0].taus)
    assert {name for name in row if row[name] != row[name]} >= set(scores)
    assert not {*scores} & {each.name for each in fields(LayerConfig)}


def test_runs_at_other_thresholds_are_another_sweep(done: Path) -> None:
    with pytest.raises(SweepError, match="holds another sweep"):
        run_sweep(make_plan({**CONFIG, "runs": {"seeds": [3, 4]}}), done)


def test_a_folder_of_schema_2_is_read_with_the_columns_of_today(old: Path) -> None:
    table = load(old)
    assert list(table) == RUNS_SCHEMA.names
    theirs = pq.read_table(OLD / "runs.parquet").to_pandas()
    assert table["accuracy_p95"].tolist() == theirs["accuracy_0.95"].tolist()
    assert table["scale_p99"].tolist() == theirs["scale_0.99"].tolist()
    assert table["run_key"].tolist() == theirs["run_key"].tolist()
    # what schema 2 called "graph"
    assert set(table["engine"]) == {"padded"}
    assert set(table["recipe_schedule"]) == {"cosine"}
    assert set(table["recipe_epochs"]) == {40}
    assert not table["layer_norm"].any()
    assert "engine" not in json.loads(table["recipe"][0])
    assert accuracy_grid(table, 0.95)["n_runs"].sum() == len(theirs)
    # shards as well as the table, and what is written of them is of today
    (old / "runs.parquet").unlink()
    pd.testing.assert_frame_equal(load(old), table)
    assert pq.read_table(compact(old)).schema.remove_metadata() == RUNS_SCHEMA
    pd.testing.assert_frame_equal(load(old), table)


def test_a_sweep_of_schema_2_is_not_gone_on_with_but_beside(old: Path) -> None:
    config = json.loads((OLD / "manifest.json").read_text())["config"]
    recipe = {k: v for k, v in config["recipe"].items() if k != "engine"}
    plan = make_plan({**config, "recipe": recipe, "compute": {"engine": "reference"}})
    with pytest.raises(
        SweepError, match=r"was begun with .*schema 2.*; this process has .*schema 4"
    ):
        run_sweep(plan, old)
    run_sweep(plan, old, allow_other_engine=True)
    both = load(old)
    assert len(both) == 2 * len(plan.runs)
    assert set(both["engine"]) == {"padded", "reference"}


def test_rows_of_schema_2_that_contradict_themselves_are_damaged(old: Path) -> None:
    path = next((old / "shards").iterdir())
    rows = pq.read_table(path).replace_schema_metadata().to_pylist()
    (old / "runs.parquet").unlink()
    for change, why in (
        ({"recipe": "[]"}, "a recipe is not a table of keys"),
        ({"recipe": '{"epochs": "many"}'}, "`epochs` must be an integer"),
        ({"d_model": 4}, "the sizes of layer .* disagree"),
    ):
        table = pa.Table.from_pylist([{**row, **change} for row in rows], schema=SCHEMA_2)
        write_table(path, table, of=path.name)
        with pytest.raises(SweepError, match=f"{path.name} is damaged .*{why}"):
            load(old)


def test_shards_with_different_columns_are_no_table(done: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(done, tmp_path / "copy"))
    (first,) = (copy / "shards").iterdir()
    # the same rows without the further thresholds, as a second shard of the folder
    second = first.with_name("00001-0123456789abcdef.parquet")
    rows = read_rows(first, most=100).select(RUNS_SCHEMA.names).replace_schema_metadata()
    write_table(second, rows, of=second.name)
    held = json.loads((copy / "manifest.json").read_text())
    held |= {"shards": [first.name, second.name], "n_runs": 2 * held["n_runs"]}
    (copy / "manifest.json").write_text(json.dumps(held))
    with pytest.raises(SweepError, match=rf"{second.name} has other columns than {first.name}"):
        load(copy)
