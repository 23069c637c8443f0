"""An option has one name and one meaning in all commands."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import typer

from capacity.cli import application
from capacity.cli.selection_options import OPTIONS
from tests.commands import run

GROUP: Any = typer.main.get_command(application())
# commands that take facts
OF_FACTS = ("rank", "describe", "dimension", "train", "verify", "recall", "report")
# the option by the beginning of its help, which is the same in all commands that have it
ONE_MEANING = {
    "--allow-other-engine": "Train all runs again, and keep those of another engine",
    "--annotations": "Keep or drop labels, comments",
    "--annotations-of-facts": "What becomes of triples about facts",
    "--answers": "Score all candidates, or find the best alone",
    "--arity": "Number of columns of a table of facts",
    "--as": "Form of the output",
    "--attention": "Folder that save_pretrained wrote",
    "--base": "IRI that relative IRIs",
    "--batch-size": "Number of sentences that are run together",
    "--blank-nodes": "Keep or drop facts with blank nodes",
    "--border": "Bound the border rank",
    "--candidates": "Objects that are compared",
    "--certificate": "Write the bounds with their proofs to this JSON file",
    "--cited": "Let proofs rest on published theorems",
    "--column": "Column of a table",
    "--comment": "Beginning of the lines that are comments",
    "--activation": "Activation function of the MLP",
    "--bias": "Add biases",
    "--mlp": "Number of hidden units",
    "--n-layers": "Number of layers",
    "--gated": "Multiply hidden units",
    "--norm": "Norm: none",
    "--norm-place": "Place of the norms",
    "--tie-embeddings": "Unembed by the transpose",
    "--positions": "Positions: none",
    "--scale": "Divide the attention logits",
    "--context": "IRI=FILE: the IRI of a JSON-LD context",
    "--curve": "Write the loss by epoch",
    "--d-head-qk": "Inner dimension of queries and keys",
    "--d-head-vo": "Inner dimension of values and outputs",
    "--d-model": "Dimension of the embeddings",
    "--decoder-text": "Text that the decoder reads",
    "--dry-run": "Print the plan",
    "--effective": "Also bound the effective rank",
    "--effort": "How hard to search",
    "--epochs": "Maximum number of epochs",
    "--estimate": "Also estimate the rank",
    "--exclude": "Drop this predicate",
    "--facts": "Write a table of the facts",
    "--field": "Field of the rank",
    "--fold": "First convert syntax to facts",
    "--graph": "Graph of an RDF dataset",
    "--head": "Head to draw",
    "--json": "Print JSON for programs",
    "--keep": "File of answers (JSON Lines)",
    "--label-predicate": "Predicate of labels that comes before",
    "--language": "Language of the labels that come first",
    "--layer": "Layer to draw",
    "--lean": "Also write what is proved of the rank to this file",
    "--learning-rate": "Learning rate of Adam",
    "--literals": "Keep or drop facts whose object is a literal",
    "--max-cells": "Largest number of cells",
    "--max-certificate-bytes": "Largest file of certificates",
    "--max-file-bytes": "Largest size of a file",
    "--max-growth": "Largest ratio of decompressed",
    "--max-rows": "Largest number of rows, triples or entries",
    "--max-term-bytes": "Longest term to read",
    "--memory-limit": "Memory for counting out of core",
    "--method": "Search only by this method",
    "--mode": "Kind of effective attention",
    "--model": "Family of models",
    "--multi": "What becomes of a (subject, predicate) pair with several objects",
    "--n-heads": "Number of heads",
    "--namespace": "Keep the predicates of this namespace",
    "--out-of-core": "Count facts in a stream",
    "--predicate": "Keep only this predicate",
    "--pseudo-likelihood": "What a masked model doesn't see",
    "--random-parts": "Compare what is known with this number of random parts",
    "--reference": "Print the reference of the TOML file",
    "--schema": "Keep or drop rdf:type, RDFS, OWL and SHACL",
    "--seed": "Seed of the random numbers",
    "--shard": "Train one of N parts",
    "--skip-errors": "Largest number of broken lines",
    "--sort": "Column by which the rows are sorted",
    "--split": "Separator of the values of a cell",
    "--start": "Start from this scheme",
    "--starts": "Largest number of random starts",
    "--table": "Form of a table",
    "--task": "Condition on the scores of the facts",
    "--templates": "TOML file of sentences",
    "--text": "Text that the model reads",
    "--timeout": "Seconds that a SPARQL endpoint may take",
    "--type": "Keep the subjects of this class",
    "--views": "Also read a view of a DuckDB file",
    "--witness": "Whether to train witnesses",
    "--workers": "Number of processes that train",
}
# and those whose help differs, with the meaning that is the same
BY_COMMAND = {
    "--dask": "address of a Dask scheduler: what its workers do is the command's",
    "--device": "device to train on: `doctor` tries it, and doesn't use it",
    "--format": "format of the files: of tensors, too, where they are read",
    "--out": "where what the command makes is written: a table, a layer, a sweep, a figure, a page",
    "--part": "attention of an encoder-decoder: a page has no cross attention",
    "--shared": "whether subjects and objects are the same entities: said, or required",
    "--tau": "threshold of a probability: of softmax, or of the share of facts that it tells",
}
# names of panels differ where the command has a panel of its own for it
PANELS = {"--seed", "--dask"}


def options(command: str) -> list[Any]:
    return [one for one in GROUP.commands[command].params if one.param_type_name == "option"]


# by name, and by command
BY_NAME: dict[str, dict[str, Any]] = defaultdict(dict)
for _command in GROUP.commands:
    for _option in options(_command):
        BY_NAME[_option.opts[0]][_command] = _option


def test_every_option_is_in_one_of_the_tables() -> None:
    assert not ONE_MEANING.keys() & BY_COMMAND.keys()
    assert sorted(BY_NAME) == sorted(ONE_MEANING.keys() | BY_COMMAND.keys())
    # those in the second table do differ
    for name in BY_COMMAND:
        assert len({one.help for one in BY_NAME[name].values()}) > 1, name


@pytest.mark.parametrize("name", ONE_MEANING)
def test_an_option_means_one_thing(name: str) -> None:
    (said,) = {one.help for one in BY_NAME[name].values()}
    assert said.startswith(ONE_MEANING[name])


@pytest.mark.parametrize("name", BY_NAME)
def test_an_option_is_given_in_one_way(name: str) -> None:
    of = BY_NAME[name].values()
    ways = {(tuple(one.opts), tuple(one.secondary_opts), one.multiple, one.is_flag, one.nargs,
             one.min if hasattr(one, "min") else None) for one in of}  # fmt: skip
    assert len(ways) == 1
    if name not in PANELS:
        assert len({one.rich_help_panel for one in of}) == 1


def test_what_is_repeated_has_the_name_of_one() -> None:
    every = [(name, one) for name, of in BY_NAME.items() for one in of.values()]
    repeated = {name for name, one in every if one.multiple}
    assert "--predicate" in repeated
    assert [name for name in repeated if name.endswith("s")] == []
    for name in repeated:
        (said,) = {one.help for one in BY_NAME[name].values()}
        assert "repeatable" in said.casefold(), name


def test_every_command_prints_json() -> None:
    assert BY_NAME["--json"].keys() == GROUP.commands.keys()


@pytest.mark.parametrize("flag", [one.flag for one in OPTIONS] + ["format", "multi"])
def test_every_command_of_facts_reads_and_chooses_by_the_same_options(flag: str) -> None:
    assert set(BY_NAME[f"--{flag}"]) == set(OF_FACTS)


@pytest.mark.parametrize("command", OF_FACTS)
def test_what_a_message_advises_is_an_option(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "four.tsv").write_text("a\tp\tx\ty\nb\tp\tx\tz\n")
    given = ["c.json"] * (command == "verify") + [str(tmp_path / "four.tsv"), "--arity", "4"]
    given += ["--out", str(tmp_path / "p.html")] if command == "report" else []
    code, _, err = run(capsys, command, *given)
    assert "No such option" not in err
    if command in ("describe", "dimension", "train", "report"):
        assert code == 2
        assert "three columns" in err
