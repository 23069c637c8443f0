"""Help has examples that run as typed, and options in groups."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from capacity.cli import app
from tests.commands import run

GROUP: Any = typer.main.get_command(app)
# what takes minutes, or a file or a server that isn't here
LONG = ("wikidata", "https://", "sweep experiments/configs/demo.toml --out")


def examples(name: str) -> list[str]:
    lines = GROUP.commands[name].epilog.splitlines()
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


EXAMPLES_OF_HELP = [(name, line) for name in GROUP.commands for line in examples(name)]


@pytest.mark.parametrize("name", [*GROUP.commands])
def test_every_command_has_two_examples_of_its_own(name: str) -> None:
    lines = examples(name)
    assert len(lines) >= 2
    assert all(shlex.split(line)[:2] == ["capacity", name] for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "line"), EXAMPLES_OF_HELP, ids=[line for _, line in EXAMPLES_OF_HELP]
)
def test_an_example_of_help_runs_as_typed(
    name: str,
    line: str,
    workplace: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(workplace)
    arguments = shlex.split(line)[1:]
    if any(part in line for part in LONG):
        # the parser refuses an option that there isn't, and a value out of range
        assert GROUP.commands[name].make_context(name, arguments[1:]).params
        return
    code, out, err = run(capsys, *arguments)
    assert (code, bool(out)) == (0, True), err


def test_a_wrong_example_would_not_parse() -> None:
    with pytest.raises(Exception, match="No such option"):
        GROUP.commands["rank"].make_context("rank", ["https://example.org/sparql", "--grahp", "x"])


@pytest.mark.parametrize("name", [*GROUP.commands])
def test_every_option_is_in_a_group(name: str) -> None:
    options = [one for one in GROUP.commands[name].params if one.param_type_name == "option"]
    assert {one.name for one in options if one.rich_help_panel is None} <= {"help"}


def test_help_shows_groups_and_examples(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    code, out, _ = run(capsys, "rank", "--help")
    assert code == 0
    titles = ("Reading the file", "Choosing facts", "Search", "Output")
    assert all(f"─ {title} ─" in out for title in titles)
    assert "$ capacity rank examples/countries.ttl --effective" in out
    # a line an example
    assert out.index("Examples:") < out.index("$ capacity") < out.rindex("\n $ capacity")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
    ids=["a file", "forced", "forced and forbidden"],
)
def test_help_is_coloured_on_a_terminal_or_where_it_is_asked_for(
    variables: dict[str, str], coloured: bool
) -> None:
    names = ("FORCE_COLOR", "NO_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "TTY_COMPATIBLE")
    kept = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(
        [sys.executable, "-m", "capacity.cli", "rank", "--help"],
        capture_output=True, text=True, check=True, env={**kept, **variables},
    )  # fmt: skip
    # SGR 30 to 37 are colours; bold and dim, 1 and 2, are none
    assert bool(re.search("\x1b\\[[0-9;]*3[0-7]m", done.stdout)) is coloured
    assert "\x1b" not in done.stderr
