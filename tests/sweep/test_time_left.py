import re

import pytest

from capacity.progress import bar, spinner
from capacity.sweep.estimates import TimeLeft


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
