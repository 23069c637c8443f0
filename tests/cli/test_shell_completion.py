"""A shell completes commands, options, and values that are one of a closed set."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from capacity.database.io.files.formats import FORMATS
from capacity.embedding.families import MODELS
from capacity.rank import METHODS

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
