"""The command that asks a language model for facts."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from capacity.database import load
from capacity.recall import beside_random_parts, recall
from capacity.transformer import load_pretrained
from tests.cli.conftest import TEMPLATES
from tests.commands import run, run_json
from tests.oracles import EXAMPLES

FIGURE_1 = EXAMPLES / "figure-1.ttl"


@pytest.fixture
def templates(tmp_path: Path) -> Path:
    (tmp_path / "t.toml").write_text(TEMPLATES)
    return tmp_path / "t.toml"


def test_the_command_prints_what_the_function_returns(
    capsys: pytest.CaptureFixture[str], language_model: Path, templates: Path, tmp_path: Path
) -> None:
    out = tmp_path / "new" / "answers.parquet"
    arguments = ["recall", language_model, FIGURE_1, "--templates", templates, "--out", out]
    got = run_json(capsys, *arguments)
    model, tokenizer = load_pretrained(language_model, head=True)
    found = recall(model, tokenizer, load(FIGURE_1), templates)
    assert pd.read_parquet(out)["score"].to_numpy() == pytest.approx(found.table["score"])
    assert [row["answer"] for row in got["rows"]] == list(found.table["answer"])
    # three births by two templates, two currencies by one
    assert (len(got["rows"]), got["facts"]) == (3 * 2 + 2, 5)
    assert got["known"] == len(found.known()) == sum(one["known"] for one in got["predicates"])
    assert got["notes"] == ["Predicates without a template, which weren't asked for: :lives_in."]
    assert (got["continuations"], got["scored"]) == (16, 16)


def test_the_table_for_people_has_a_row_for_each_predicate(
    capsys: pytest.CaptureFixture[str], language_model: Path, templates: Path
) -> None:
    code, out, err = run(capsys, "recall", language_model, FIGURE_1, "--templates", templates)
    assert (code, err) == (0, "")
    first, head, *rows = out.splitlines()
    assert "GPT2LMHeadModel knows" in first
    assert "of 5 facts; log-likelihood of the sentence from its object on" in first
    assert head.split()[:2] == ["predicate", "facts"]
    assert [row.split()[:2] for row in rows[:2]] == [[":born_in", "3"], [":currency", "2"]]
    assert "weren't asked for: :lives_in." in out


def test_what_is_known_is_compared_with_random_parts(
    capsys: pytest.CaptureFixture[str], language_model: Path, templates: Path
) -> None:
    arguments = ["recall", language_model, FIGURE_1, "--templates", templates]
    parts = ["--random-parts", "3", "--seed", "1"]
    got = run_json(capsys, *arguments, *parts)
    model, tokenizer = load_pretrained(language_model, head=True)
    found = recall(model, tokenizer, load(FIGURE_1), templates)
    table = beside_random_parts(found.known(), found.facts, draws=3, seed=1)
    assert pd.DataFrame(got["random_parts"]).equals(table)
    assert run_json(capsys, *arguments)["random_parts"] is None
    code, out, err = run(capsys, *arguments, *parts)
    assert (code, err) == (0, "")
    assert "beside 3 random parts of the same size" in out
    assert "description_length" in out


def test_labels_of_facts_that_are_not_selected_are_used(
    capsys: pytest.CaptureFixture[str], language_model: Path, tmp_path: Path
) -> None:
    (tmp_path / "a.ttl").write_text(
        '<x:N> <x:capital> <x:O>; <x:name> "Norway" . <x:P> <x:capital> <x:L> .'
        '<x:O> <http://www.w3.org/2000/01/rdf-schema#label> "Oslo" .'
        '<x:L> <x:name> "Lima" .'
    )
    options = ["--predicate", "x:capital", "--label-predicate", "x:name"]
    arguments = ["recall", language_model, tmp_path / "a.ttl", *options, "--json"]
    code, out, _ = run(capsys, *arguments)
    assert code == 0
    assert '"template": "{subject}, ' in out
    assert '"answer": "Oslo"' in out or '"answer": "Lima"' in out


def test_a_file_of_which_a_part_is_selected_is_read_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, language_model: Path
) -> None:
    # standard input can't be read a second time
    facts = b'<x:N> <x:capital> <x:O>; <x:name> "Norway" . <x:O> <x:name> "Oslo" .'
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(facts)))
    options = ["--format", "turtle", "--predicate", "x:capital", "--label-predicate", "x:name"]
    code, out, err = run(capsys, "recall", language_model, "-", *options, "--json")
    assert (code, err) == (0, "capacity: 1 of 3 facts are selected; omitted by predicates 2\n")
    assert [(row["subject"], row["answer"]) for row in json.loads(out)["rows"]] == [
        ("<x:N>", "Oslo")
    ]


def test_an_interrupted_run_is_continued(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    language_model: Path,
    templates: Path,
    tmp_path: Path,
) -> None:
    from capacity.recall.scores.continuations import ContinuationScorer

    keep = tmp_path / "answers.jsonl"
    answer, asked = ContinuationScorer.answer, []

    def stopping(self: ContinuationScorer, queries: Any, *, best_only: bool) -> Any:
        asked.extend(queries)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return answer(self, queries, best_only=best_only)

    monkeypatch.setattr(ContinuationScorer, "answer", stopping)
    arguments = ["recall", language_model, FIGURE_1, "--templates", templates, "--keep", keep]
    # one question at a time
    arguments += ["--batch-size", "1"]
    assert run(capsys, *arguments)[0] == 130
    assert len(keep.read_text().splitlines()) == 2
    assert run(capsys, *arguments)[0] == 0
    # eight questions, of which two were kept, and the interrupted one is asked twice
    assert len(asked) == 8 - 2 + 3


@pytest.mark.parametrize(
    ("change", "message"),
    [(["--templates", "{tmp}/none.toml"], "none.toml: no such file"),
     (["--templates", "{tmp}/bad.toml"], "contains them 1 and 0 times"),
     (["--out", "{tmp}/a.txt"], "--out must end in"), (["--batch-size", "0"], "--batch-size"),
     (["--random-parts", "1"], "--random-parts` must be an integer of at least 2"),
     (["--label-predicate", "name"], "No predicate is called 'name'"),
     (["--predicate", "colour"], "colour")],
)  # fmt: skip
def test_wrong_use_is_one_message(
    capsys: pytest.CaptureFixture[str],
    language_model: Path,
    tmp_path: Path,
    change: list[str],
    message: str,
) -> None:
    (tmp_path / "bad.toml").write_text('born_in = "{subject} was born."')
    words = [word.format(tmp=tmp_path) for word in change]
    code, out, err = run(capsys, "recall", language_model, FIGURE_1, *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_a_model_without_a_head_is_refused(
    capsys: pytest.CaptureFixture[str], model_folder: Path
) -> None:
    code, _, err = run(capsys, "recall", model_folder, FIGURE_1)
    assert code == 2
    assert "must hold a model with a masked-LM or LM head; its config.json has 'BertModel'" in err
