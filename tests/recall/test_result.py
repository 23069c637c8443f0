"""Results of `recall`: known facts, summaries over templates, and answers kept in a file."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import capacity
from capacity import Database
from capacity.errors import CapacityError, FormatError, InvalidArgumentError
from capacity.recall import Recall, recall
from capacity.recall.questions import questions_of
from capacity.recall.table import Asked, table_of
from capacity.recall.templates import Template
from tests.recall.tiny_language_models import TEMPLATES, bert, facts, gpt2, trained

# objects in alphabetical order: B, C, D
OBJECTS = ("B", "C", "D")
# scores of these by template and subject; of r two answers are right
FIRST, SECOND = "{subject} {object}", "{subject}: {object}"
SCORES = {
    FIRST: {"p": (-1.0, -2.0, -3.0), "q": (-2.0, -2.0, -9.0), "r": (-5.0, -1.0, -2.0)},
    SECOND: {"p": (-3.0, -1.0, -9.0), "q": (-4.0, -3.0, -9.0), "r": (-1.0, -3.0, -2.0)},
}


def by_hand() -> Recall:
    """A result of the scores above."""
    rows = [("p", "has", "B"), ("q", "has", "C"), ("r", "has", "C"), ("r", "has", "D")]
    db = Database.from_triples(rows, multi="keep")
    templates = {db.predicates[0]: tuple(map(Template, SCORES))}
    questions, _ = questions_of(
        db, templates, "predicate", lambda terms: {t: t.text for t in terms}
    )
    # B is no object of a subject but p, and no candidate is missing
    assert {one.candidates for one in questions} == {OBJECTS}
    asked = [
        Asked(
            one,
            SCORES[one.template.text][one.subject],
            dict.fromkeys(one.right, 1),
            dict.fromkeys(one.right, ("B", one.subject == "p")),
            3,
        )
        for one in questions
    ]
    table = table_of(db, asked, best_only=False)
    return Recall(table, db, "Model", "by hand", (), 18, 18)


def row(table: pd.DataFrame, subject: str, name: str, template: str = FIRST) -> Any:
    same = (table["subject"] == subject) & (table["object"] == name)
    return table[same & (table["template"] == template)].iloc[0]


def test_a_row_compares_an_object_with_the_wrong_candidates() -> None:
    table = by_hand().table
    # p: B has e^-1 of e^-1 + e^-2 + e^-3
    one = row(table, "p", "B")
    total = np.exp([-1.0, -2.0, -3.0]).sum()
    assert one["probability"] == pytest.approx(np.exp(-1) / total)
    assert (one["rank"], one["margin"], one["answer"], one["right"]) == (1, 1.0, "B", True)
    # q: C ties with B, and a tie counts against it
    one = row(table, "q", "C")
    assert (one["rank"], one["margin"], one["answer"], one["right"]) == (2, 0.0, "B", False)


def test_any_right_answer_of_a_pair_counts_and_the_number_of_them_is_there() -> None:
    table = by_hand().table
    # r: C is best; D is behind it, and before the only wrong candidate, B
    for name, score in (("C", -1.0), ("D", -2.0)):
        one = row(table, "r", name)
        assert (one["rank"], one["answer"], one["right"], one["n_right"]) == (1, "C", True, 2)
        assert one["probability"] == pytest.approx(np.exp(score) / (np.exp(score) + np.exp(-5)))
    assert set(table.loc[table["subject"] != "r", "n_right"]) == {1}


def test_calibrated_scores_lose_their_mean_over_subjects() -> None:
    one = row(by_hand().table, "q", "C")
    # means of B, C, D over p, q, r: -8/3, -5/3, -14/3; so q has 2/3, -1/3, -13/3
    assert one["score_calibrated"] == pytest.approx(-1 / 3)
    assert (one["rank_calibrated"], one["answer_calibrated"]) == (2, "B")
    assert one["margin_calibrated"] == pytest.approx(-1.0)


def names(db: Database) -> set[tuple[str, ...]]:
    return {tuple(map(str, (s, o))) for s, _, o in db}


def test_what_is_known_is_a_part_of_the_facts() -> None:
    found = by_hand()
    # ranks over the two templates: p-B 1 2, q-C 2 1, r-C 1 2, r-D 1 2
    every = {("p", "B"), ("q", "C"), ("r", "C"), ("r", "D")}
    assert names(found.known()) == names(found.known(over="best")) == every
    none = found.known(over="worst")
    assert len(none) == 0
    assert isinstance(none, Database)
    # probabilities: p-B .67 .12, q-C .50 .73, r-C .98 .12, r-D .95 .27
    assert names(found.known(0.6)) == {("q", "C"), ("r", "D")}
    assert names(found.known(0.6, over="best")) == every
    assert names(found.known(0.26, over="worst")) == {("q", "C"), ("r", "D")}
    assert len(found.known(0.99, over="best")) == 0
    assert found.known(0.6).triples.shape == (2, 3)


@pytest.mark.parametrize("tau", [0, 1, 1.5, "best", None, float("nan")])
def test_another_threshold_is_refused(tau: Any) -> None:
    with pytest.raises(CapacityError, match=r"`tau` must be a probability between 0 and 1"):
        by_hand().known(tau)


def test_templates_are_summarised_by_fact() -> None:
    table = by_hand().by_fact().set_index(["subject", "object"])
    one: Any = table.loc[("r", "C")]
    assert (one["n_templates"], one["rank_best"], one["rank_worst"], one["known"]) == (2, 1, 2, 0.5)
    assert one["probability_mean"] == pytest.approx(
        (one["probability_best"] + one["probability_worst"]) / 2
    )
    # p: the answers are B and C; q: B and C; r: C and B
    assert set(table["agreement"]) == {0.5}


def test_facts_are_summarised_by_predicate() -> None:
    (one,) = by_hand().by_predicate().to_dict("records")
    assert one == {
        "predicate": "has", "facts": 4, "templates": 2, "candidates": 3, "known": 4,
        "known_best": 4, "known_worst": 0, "pairs": 3,
        # right answers: p and r by the first template, q by the second
        "pairs_right": 1.5, "greedy_right": 0.25,
    }  # fmt: skip


def test_a_model_that_was_trained_on_facts_knows_them_and_no_permuted_ones() -> None:
    model, tokenizer = trained()
    db = facts().select(predicates="capital")
    one = {"capital": TEMPLATES["capital"][0]}
    found = recall(model, tokenizer, db, one)
    assert found.known(0.9) == db
    assert found.table["greedy_right"].all()
    rows = [tuple(map(str, fact)) for fact in db]
    wrong = [(s, p, rows[i - 1][2]) for i, (s, p, _) in enumerate(rows)]
    permuted = recall(model, tokenizer, Database.from_triples(wrong), one)
    assert len(permuted.known()) == 0
    assert permuted.facts == Database.from_triples(wrong)
    assert not permuted.table["right"].any()


def test_the_room_is_called_as_its_function() -> None:
    model, tokenizer = gpt2()
    library: Any = capacity
    assert library.recall(model, tokenizer, facts(), TEMPLATES).model == "GPT2LMHeadModel"
    assert len(repr(recall(model, tokenizer, facts(), TEMPLATES))) < 200


def test_the_best_answers_alone_have_no_probabilities() -> None:
    model, tokenizer = gpt2()
    found = recall(model, tokenizer, facts(), TEMPLATES, answers="best")
    empty = ["probability", "margin", "score_calibrated", "rank_calibrated", "answer_calibrated"]
    assert found.table[empty].isna().all(axis=None)
    assert (found.table["rank"].dropna() == 1).all()
    wrong: list[dict[str, Any]] = [{"tau": 0.5}, {"calibrated": True}]
    for options in wrong:
        with pytest.raises(InvalidArgumentError, match="must have the scores of all candidates"):
            found.known(**options)


def count_runs(model: Any) -> list[int]:
    runs: list[int] = []
    model.register_forward_pre_hook(lambda *_: runs.append(1))
    return runs


@pytest.mark.parametrize("make", [gpt2, bert])
def test_an_interruption_keeps_what_was_done_and_is_continued(make: Any, tmp_path: Path) -> None:
    model, tokenizer = make()
    # one question at a time
    ask = partial(recall, model, tokenizer, facts(), TEMPLATES, batch_size=1)
    keep = tmp_path / "answers.jsonl"
    whole = ask()

    def stop(what: str, done: int, total: int, left: float | None) -> None:
        # five capitals by three templates, and the borders of three subjects
        assert (what, total) == ("questions", 18)
        if done == 11:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask(keep=keep, progress=stop)
    assert len(keep.read_text().splitlines()) == 11
    runs = count_runs(model)
    again = ask(keep=keep)
    needed = len(runs)
    assert again.table.equals(whole.table)
    assert len(keep.read_text().splitlines()) == 18
    before = keep.stat().st_mtime_ns
    third = ask(keep=keep)
    assert third.table.equals(whole.table)
    # nothing is asked again, and nothing written
    assert (len(runs), keep.stat().st_mtime_ns) == (needed, before)


def test_answers_of_another_model_or_method_are_not_taken(tmp_path: Path) -> None:
    keep = tmp_path / "answers.jsonl"
    model, tokenizer = bert()
    one = recall(model, tokenizer, facts(), TEMPLATES, keep=keep)
    with_rest = {"pseudo_likelihood": "left_to_right", "keep": keep}
    other = recall(model, tokenizer, facts(), TEMPLATES, **with_rest)
    assert not one.table.equals(other.table)
    runs = count_runs(model)
    model.bert.embeddings.word_embeddings.weight.data[7, 0] += 1
    recall(model, tokenizer, facts(), TEMPLATES, keep=keep)
    assert runs
    assert len(keep.read_text().splitlines()) == 3 * 18


NO_SCORES = '{"query": "a", "scores": %s, "greedy": [], "n": 1}'


@pytest.mark.parametrize(
    "line", ["{", "[]", "5", '{"query": "a"}', NO_SCORES % '["x"]', NO_SCORES % "5", "[" * 5000]
)
def test_a_file_of_something_else_is_refused_and_left(tmp_path: Path, line: str) -> None:
    keep = tmp_path / "answers.jsonl"
    good = json.dumps({"query": "a", "scores": [1.0], "greedy": [[1]], "n": 1})
    keep.write_text(f"{good}\n{line}\n")
    model, tokenizer = gpt2()
    with pytest.raises(FormatError, match=r"answers\.jsonl, line 2: it is no answer"):
        recall(model, tokenizer, facts(), TEMPLATES, keep=keep)
    assert keep.read_text() == f"{good}\n{line}\n"


def test_an_answer_of_another_shape_is_refused(tmp_path: Path) -> None:
    keep = tmp_path / "answers.jsonl"
    model, tokenizer = gpt2()
    recall(model, tokenizer, facts(), TEMPLATES, keep=keep)
    said = [json.loads(line) for line in keep.read_text().splitlines()]
    keep.write_text("".join(json.dumps({**one, "scores": [0.0]}) + "\n" for one in said))
    with pytest.raises(FormatError, match="it is no answer"):
        recall(model, tokenizer, facts(), TEMPLATES, keep=keep)


def test_subjects_of_one_name_are_noted() -> None:
    model, tokenizer = gpt2()
    rows = [("x", "capital", "Oslo"), ("y", "capital", "Lima"), ("x", "name", "Norway"),
            ("y", "name", "Norway")]  # fmt: skip
    db = Database.from_triples(rows)
    found = recall(
        model, tokenizer, db, {"capital": TEMPLATES["capital"][0]}, label_predicates=["name"]
    )
    assert any(
        "Several subjects of capital have one name, such as 'Norway'" in n for n in found.notes
    )
    assert list(found.table["subject"]) == ["x", "y"]
    # one sentence, and so the same answer
    assert found.table["answer"].nunique() == 1


def test_a_candidate_that_is_alone_is_noted() -> None:
    model, tokenizer = gpt2()
    db = Database.from_triples([("Norway", "capital", "Oslo")])
    found = recall(model, tokenizer, db, {"capital": TEMPLATES["capital"][0]})
    assert "has a single candidate" in found.notes[0]
    assert found.table["margin"].isna().all()
    assert found.table.loc[0, "probability"] == 1
