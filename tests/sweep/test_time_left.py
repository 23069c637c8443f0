"""The time that is left of a sweep, and measurements of pace."""

import re

import pandas as pd
import pytest

from capacity.errors import SweepError
from capacity.progress import bar, spinner
from capacity.sweep import make_plan, measure_runs, train_run
from capacity.sweep.estimates import TimeLeft
from tests.sweep import tasks


def test_time_left_goes_by_what_runs_cost_and_not_by_their_number() -> None:
    seconds = [0.0]
    left = TimeLeft(100.0, clock=lambda: seconds[0])
    assert left.seconds() is None
    for _ in range(9):
        seconds[0] += 1
        left.done(1)
    # nine runs of ten in nine seconds; the last costs 91 times as much as each of them
    assert left.seconds() == pytest.approx(91.0)
    seconds[0] += 91
    left.done(91)
    assert left.seconds() == 0.0


def test_estimates_that_are_all_wrong_by_a_factor_are_corrected_by_the_pace() -> None:
    seconds = [0.0]
    left = TimeLeft(10.0, clock=lambda: seconds[0])
    # 30 seconds for what was said to cost one
    seconds[0] = 30.0
    left.done(1.0)
    assert left.seconds() == pytest.approx(270.0)


def test_the_bar_shows_the_seconds_that_it_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "120")
    with bar() as tell:
        tell("runs", 0, 4, None)
        # an hour, two minutes and five seconds, or a little less when it is drawn
        tell("runs", 1, 4, 3725.0)
    assert re.search(r"1:02:0[345]", capsys.readouterr().err)


def test_a_bar_within_another_is_silent(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with bar() as tell, bar() as within, spinner("waiting") as say:
        tell("runs", 1, 4)
        within("reading", 1, 2)
        say("more")
    err = capsys.readouterr().err
    assert "runs" in err
    assert "reading" not in err
    assert "waiting" not in err
    with spinner("waiting"), bar() as within:
        within("reading", 1, 2)
    assert "waiting" in (err := capsys.readouterr().err)
    assert "reading" not in err


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
