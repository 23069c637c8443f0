"""Closed, full and broken streams: no command claims a success that nobody can see."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.oracles import EXAMPLES, ROOT

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="a shell")]
FIGURE_1 = EXAMPLES / "figure-1.ttl"
BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
# one of each kind: results, a page, a table of the installation, help, the version
LINES = [["describe", FIGURE_1], ["rank", FIGURE_1, "--json"], ["dimension", FIGURE_1],
         ["report", FIGURE_1, "--out", "{folder}/page.html"], ["doctor", "--device", "cpu"],
         ["verify", "--help"], ["--version"], ["sweep", "--reference"]]  # fmt: skip


def shell(line: list[object], more: str, folder: Path, **variables: str) -> tuple[int, str, str]:
    words = [str(word).format(folder=folder) for word in line]
    done = subprocess.run(
        ["sh", "-c", f'"$@" {more}', "sh", sys.executable, "-m", "capacity.cli", *words],
        capture_output=True, text=True, cwd=ROOT, env={**BUFFERED, **variables},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("line", LINES, ids=lambda line: str(line[0]))
def test_a_closed_output_is_no_success_and_no_work_is_done(
    line: list[object], tmp_path: Path
) -> None:
    code, _, err = shell(line, ">&-", tmp_path)
    assert code == 2
    assert err == ("capacity: standard output is closed. Send it to a file, or to /dev/null.\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
@pytest.mark.parametrize(
    ("line", "unbuffered"), [*((line, "") for line in LINES), (LINES[0], "1")],
    ids=lambda one: str(one[0]) if isinstance(one, list) else one,
)  # fmt: skip
def test_a_full_output_is_told_in_a_line(
    line: list[object], unbuffered: str, tmp_path: Path
) -> None:
    code, _, err = shell(line, ">/dev/full", tmp_path, PYTHONUNBUFFERED=unbuffered)
    assert code == 2
    assert err.splitlines()[-1] == (
        "capacity: standard output can't be written (No space left on device). Send it elsewhere."
    )
    assert "Exception ignored" not in err


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_gone_ends_a_command_without_a_word(
    unbuffered: str, tmp_path: Path
) -> None:
    # 1 would say that a certificate is refuted
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        [sys.executable, "-m", "capacity.cli", "describe", FIGURE_1, "--multi", "first"],
        stdout=theirs, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        env={**BUFFERED, "PYTHONUNBUFFERED": unbuffered},
    )  # fmt: skip
    os.close(theirs)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_closed_input_is_told_and_a_closed_error_stays_out_of_the_output(tmp_path: Path) -> None:
    code, _, err = shell(["rank", "-", "--format", "turtle"], "<&-", tmp_path)
    assert (code, err) == (
        2, "capacity: -: standard input is closed. Pass the path of a file.\n"
    )  # fmt: skip
    # it has a warning, of pairs with several objects
    facts = tmp_path / "a.tsv"
    facts.write_text("a\tp\tb\na\tp\tc\n")
    code, out, _ = shell(["describe", facts, "--json"], "2>&-", tmp_path)
    assert code == 0
    assert json.loads(out)["triples"] == 2
