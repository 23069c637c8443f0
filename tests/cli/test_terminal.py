"""Progress and colours belong to a terminal: a file gets neither, unless it asks for colours."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from capacity.progress import bar, spinner
from tests.oracles import EXAMPLES

NAMES = ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "PY_COLORS", "GITHUB_ACTIONS")
RANK = [sys.executable, "-m", "capacity.cli", "rank", str(EXAMPLES / "figure-1.ttl")]


def environment(**variables: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in NAMES}
    return {**kept, "TERM": "xterm-256color", **variables}


@pytest.mark.slow
@pytest.mark.parametrize("variables", [{}, {"FORCE_COLOR": "1"}, {"TTY_COMPATIBLE": "0"}])
def test_progress_is_silent_in_a_file_even_if_colours_are_asked_for(
    variables: dict[str, str],
) -> None:
    done = subprocess.run(
        RANK, capture_output=True, text=True, check=True, env=environment(**variables)
    )
    assert done.stderr == ""
    assert "\x1b" not in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudoterminals of this kind")
def test_progress_is_shown_on_a_terminal_and_results_stay_plain() -> None:
    import pty

    ours, theirs = pty.openpty()
    done = subprocess.run(
        RANK, stdout=subprocess.PIPE, stderr=theirs, check=True, env=environment()
    )
    os.close(theirs)
    seen = b""
    # the end of a closed pseudoterminal is an error of input on Linux, and empty elsewhere
    try:
        while piece := os.read(ours, 4096):
            seen += piece
    except OSError:
        pass
    os.close(ours)
    assert b"bounding the rank of 8 facts" in seen
    assert done.stdout.startswith(b"The rank is 5: ")
    assert b"\x1b" not in done.stdout


def test_names_are_neither_markup_nor_controls_beside_a_spinner_and_a_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # a folder of this name would be an error of markup
    name = "[/x]\x1b]0;T\x07\u202e"
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with spinner(f"reading {name}") as say:
        say(name)
    with bar() as progress:
        progress(f"bytes of {name}", 1, 2)
        progress.note(name)
    seen = capsys.readouterr().err
    assert r"[/x]\x1b]0;T\x07\u202e" in seen
    assert "\x1b]0;" not in seen
    assert "\u202e" not in seen


def test_a_long_work_writes_a_line_now_and_then_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "0")

    def written(n: int) -> str:
        """Wait until so many lines are there, and return them."""
        seen, until = "", time.monotonic() + 10
        while seen.count("\n") < n and time.monotonic() < until:
            time.sleep(0.001)
            seen += capsys.readouterr().err
        return seen

    with bar(line_every=0.005) as progress:
        # nothing is known yet
        time.sleep(0.02)
        assert capsys.readouterr().err == ""
        progress("runs", 120, 1560, 400.0)
        # again and again, also while a run takes longer than that
        lines = written(3).splitlines()
        assert set(lines) == {"runs: 120 of 1,560 done, about 7 minutes left"}
        progress("runs", 121, 1560)
        assert written(2).splitlines()[-1] == "runs: 121 of 1,560 done"
        # a bar within is silent, and none writes after the end
        with bar(line_every=0.005) as inner:
            inner("bytes", 1, 2)
            time.sleep(0.02)
    assert "bytes" not in capsys.readouterr().err
    time.sleep(0.02)
    assert capsys.readouterr().err == ""
    with bar() as silent:
        silent("runs", 1, 2)
    assert capsys.readouterr().err == ""
