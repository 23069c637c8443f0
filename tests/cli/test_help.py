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

from capacity.cli import application
from capacity.database.io.files.formats import FORMATS
from capacity.embedding.families import MODELS
from capacity.rank import METHODS
from tests.commands import run

GROUP: Any = typer.main.get_command(application())
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


IN_T = [name for name in FORMATS if name.startswith("t")]


def completed(line: str, shell: str = "bash") -> list[str]:
    """What a shell is given for the last word of a line, which may be empty."""
    words = line.split(" ")
    asked = {
        "_CAPACITY_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    done = subprocess.run(
        [sys.executable, "-c", "from capacity.cli import main; main([])"],
        capture_output=True, text=True, check=True, env={**os.environ, **asked},
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("capacity d", ["describe", "dimension", "doctor"]),
        ("capacity rank a.ttl --eff", ["--effort", "--effective"]),
        ("capacity rank a.ttl --effort ", ["quick", "standard", "thorough"]),
        ("capacity rank a.ttl --format t", [*IN_T, "tns"]),
        ("capacity describe a.ttl --format t", IN_T),
        ("capacity rank a.ttl --table ", ["long", "wide", "n3"]),
        ("capacity rank a.ttl --annotations-of-facts o", ["order-4", "order-5"]),
        ("capacity rank a.ttl --graph ", ["default", "union"]),
        ("capacity rank a.ttl --multi drop", ["drop-pair", "drop-predicate"]),
        ("capacity describe a.ttl --as ", ["table", "turtle"]),
        ("capacity dimension a.ttl --task s", ["signs"]),
        ("capacity dimension a.ttl --model ", [*MODELS]),
        ("capacity grid demo --tau a", ["argmax", "argmax_paper"]),
        ("capacity train a.ttl --device ", ["auto", "cpu", "cuda"]),
        ("capacity doctor --device c", ["cpu", "cuda"]),
        ("capacity attention m --mode ", ["plain", "simplex", "causal"]),
        # bash splits what it inserts at spaces
        ("capacity rank a.ttl --method f", [r"flip\ graph\ over\ F_2", r"flip\ graph\ over\ F_3"]),
    ],
)
def test_values_of_a_closed_set_are_completed(line: str, values: list[str]) -> None:
    assert sorted(completed(line)) == sorted(values)


def test_other_shells_escape_spaces_themselves() -> None:
    names = [method.name for method in METHODS if method.name.startswith("f")]
    assert completed("capacity rank a.ttl --method f", "fish") == names


def test_a_file_is_left_to_the_shell() -> None:
    assert completed("capacity rank ") in ([], [""])


@pytest.mark.parametrize("option", ["--install-completion", "--show-completion"])
def test_completion_can_be_shown_and_installed(option: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "capacity.cli", "--help"], capture_output=True, text=True, check=True
    )
    assert option in done.stdout
