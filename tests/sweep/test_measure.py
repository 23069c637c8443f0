import pandas as pd
import pytest

from capacity.errors import SweepError
from capacity.sweep import make_plan, measure_runs, train_run
from tests.sweep import tasks

PLAN = make_plan(
    {
        "databases": {"synthetic": {"count": 3, "max_triples": 20}},
        "layers": {"d_model": [2], "n_heads": [1, 2], "d_head_qk": [1], "d_head_vo": [1, 2]},
        "recipe": {"epochs": 20},
    }
)


@pytest.mark.slow
def test_the_table_has_the_runs_in_order_and_what_was_measured_on_any_number_of_workers() -> None:
    told: list[tuple[str, int, int, float | None]] = []
    table = measure_runs(PLAN.runs, tasks.norms, progress=lambda *said: told.append(said))
    # three databases and twelve runs
    assert told[2] == ("ranks", 3, 3, None)
    assert told[-1] == ("runs", 12, 12, 0.0)
    assert table["run_key"].tolist() == [run.key for run in PLAN.runs]
    row, layer = train_run(PLAN.runs[5])
    assert table.to_dict("records")[5] == {**row, **tasks.norms(PLAN.runs[5], layer)}
    pd.testing.assert_frame_equal(measure_runs(PLAN.runs, tasks.norms, workers=2), table)


def test_a_measure_that_fails_is_reported() -> None:
    with pytest.raises(SweepError, match="the poison"):
        measure_runs(PLAN.runs, tasks.norms_but_one)
    with pytest.raises(ValueError, match="at least 1; got 0"):
        measure_runs(PLAN.runs, tasks.norms, workers=0)
    with pytest.raises(ValueError, match="1 of 2 are repeated"):
        measure_runs(PLAN.runs[:1] * 2, tasks.norms)
