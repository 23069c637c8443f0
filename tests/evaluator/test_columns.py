import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.errors import InvalidArgumentError
from capacity.evaluator import (
    accuracy_column,
    accuracy_grid,
    memorised_runs,
    scale_column,
    term_accuracy,
    with_current_names,
)
from capacity.layer import AttentionLayer, LayerConfig
from tests.oracles import ROOT, figure_1

TAUS = st.floats(0.5, 1, exclude_min=True, exclude_max=True)


def test_a_column_ends_in_the_decimals_of_its_threshold() -> None:
    # two decimals at least, and no dot, which SQL would take for a part of a name
    expected = {0.5: "p50", 0.9: "p90", 0.95: "p95", 0.999: "p999", 0.875: "p875"}
    assert {tau: accuracy_column(tau) for tau in expected} == {
        tau: f"accuracy_{name}" for tau, name in expected.items()
    }
    assert scale_column(0.95) == "scale_p95"
    with pytest.raises(InvalidArgumentError, match="strictly between"):
        scale_column(0.5)


@given(TAUS, TAUS)
def test_different_thresholds_have_different_columns_that_need_no_quotes(
    a: float, b: float
) -> None:
    assert accuracy_column(a).isidentifier()
    assert (accuracy_column(a) == accuracy_column(b)) == (a == b)


def test_partial_sums_have_a_column_for_each_threshold_however_close() -> None:
    # by two decimals 0.999 was 1.00, and 0.994 was 0.99
    db = figure_1()
    layer = AttentionLayer(LayerConfig(2, 1, 1, 1), db.n_tokens)
    table = term_accuracy(layer, db, taus=[0.99, 0.994, 0.999])
    assert {"accuracy_p99", "accuracy_p994", "accuracy_p999"} <= set(table.columns)


def test_a_committed_table_of_schema_2_gives_the_grid_of_its_renamed_columns() -> None:
    old = pd.read_parquet(ROOT / "experiments/facts/results/figures-plain.parquet")
    assert {"accuracy_0.50", "accuracy_0.95", "scale_0.99"} <= set(old.columns)
    new = with_current_names(old)
    assert {"accuracy_p50", "accuracy_p95", "scale_p99"} <= set(new.columns)
    assert not [name for name in new.columns if "." in name]
    grid = accuracy_grid(old, 0.95)
    assert grid["n_runs"].sum() + grid["n_diverged"].sum() == len(old)
    pd.testing.assert_frame_equal(grid, accuracy_grid(new, 0.95))
    assert (memorised_runs(old, 0.95) == (new["accuracy_p95"] == 1)).all()


def test_no_committed_table_keeps_a_threshold_with_a_dot_in_the_name_of_a_column() -> None:
    paths = sorted((ROOT / "experiments").glob("*/results/*.parquet"))
    old = {path: {*pq.read_schema(path).names} for path in paths}
    assert any("accuracy_0.95" in names for names in old.values())
    for path, names in old.items():
        table = with_current_names(pd.DataFrame(columns=sorted(names)))
        left = [name for name in table.columns if name.startswith(("accuracy_0", "scale_0"))]
        assert not left, path.name


def test_a_column_under_both_its_names_is_refused() -> None:
    table = pd.DataFrame({"accuracy_0.95": [1.0], "accuracy_p95": [0.5]})
    with pytest.raises(InvalidArgumentError, match=r"has accuracy_0\.95 and accuracy_p95"):
        with_current_names(table)
