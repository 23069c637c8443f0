"""Scores are those of a loop over whole sentences, one token at a time, in float64."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from capacity.recall import Recall, recall
from capacity.recall.scores.continuations import ContinuationScorer
from capacity.recall.sentences import Query, Sentence
from tests.recall.tiny_language_models import MODELS, TEMPLATES, facts, rows_of, trained

CAUSAL = ("GPT-2", "Llama", "Mistral")
# one that reads to the left, and one that reads both sides
QUICK = ("GPT-2", "BERT")


def log_p(model: Any, **given: list[int]) -> torch.Tensor:
    """Log-probabilities, of one run of the model on one sentence, without a cache."""
    inputs: dict[str, Any] = {name: torch.tensor([ids]) for name, ids in given.items()}
    if "bert" not in model.config.model_type:
        inputs["use_cache"] = False
    with torch.no_grad():
        return model(**inputs).logits[0].log_softmax(-1)


def left_to_right(model: Any, ids: list[int], first: int, **source: list[int]) -> float:
    name = "decoder_input_ids" if source else "input_ids"
    rows = log_p(model, **source, **{name: ids})
    return sum(float(rows[i - 1, ids[i]]) for i in range(first, len(ids)))


def naive(family: str, model: Any, tokenizer: Any, before: str, name: str, after: str) -> float:
    """Score of one object, by the definition."""
    text = f"{before}{name}{after}"
    if family == "T5":
        # the sentinels around the object, which the decoder writes from its padding token
        source = tokenizer(f"{before}<extra_id_0>{after}")["input_ids"]
        wanted = tokenizer(name, add_special_tokens=False)["input_ids"]
        open_, close = tokenizer.convert_tokens_to_ids(["<extra_id_0>", "<extra_id_1>"])
        return left_to_right(model, [0, open_, *wanted, close], 2, input_ids=source)
    got = tokenizer(text, return_offsets_mapping=True)
    ids, ends = got["input_ids"], [end for _, end in got["offset_mapping"]]
    # the first token with a letter of the object, with the blank before it
    first = next(i for i, end in enumerate(ends) if end > len(before.rstrip()))
    if family == "BART":
        source = tokenizer(f"{before}<mask>{after}")["input_ids"]
        return left_to_right(model, [1, *ids], first + 1, input_ids=source)
    if family == "BERT":
        last = max(i for i, end in enumerate(ends) if 0 < end <= len(before) + len(name)) + 1
        hidden = [[4 if j == i else x for j, x in enumerate(ids)] for i in range(first, last)]
        return sum(
            float(log_p(model, input_ids=masked)[i, ids[i]])
            for i, masked in zip(range(first, last), hidden, strict=True)
        )
    if family == "Llama":
        ids = ids[:-1]  # </s> is no part of the text
    # of a text that begins with its object, something must come before
    ids, first = ([0, *ids], first + 1) if first == 0 else (ids, first)
    return left_to_right(model, ids, first)


@pytest.mark.parametrize(
    "family",
    [pytest.param(one, marks=[] if one in (*QUICK, "T5") else pytest.mark.slow) for one in MODELS],
)
def test_scores_are_those_of_a_naive_loop(family: str) -> None:
    model, tokenizer = MODELS[family]()
    db = facts()
    table = recall(model, tokenizer, db, TEMPLATES).table
    # five capitals by three templates, and four borders by one
    assert len(table) == 5 * 3 + 4
    objects = {
        predicate: sorted({str(o) for _, p, o in db if str(p) == predicate})
        for predicate in TEMPLATES
    }
    for row in rows_of(table):
        before, after = row.template.replace("{subject}", row.subject).split("{object}")
        scores = {
            name: naive(family, model, tokenizer, before, name, after)
            for name in objects[row.predicate]
        }
        right = {str(o) for s, p, o in db if (str(s), str(p)) == (row.subject, row.predicate)}
        own = scores[row.object]
        wrong = [score for name, score in scores.items() if name not in right]
        assert row.score == pytest.approx(own, abs=1e-9)
        assert row.rank == 1 + sum(score >= own for score in wrong)
        assert row.margin == pytest.approx(own - max(wrong), abs=1e-9)
        among = np.exp(own) / (np.exp(own) + np.exp(wrong).sum())
        assert row.probability == pytest.approx(among, abs=1e-9)
        assert row.probability_vocabulary == pytest.approx(np.exp(own), abs=1e-9)
        best = max(scores, key=lambda name: scores[name])
        assert row.answer == best
        assert row.right == (best in right)
        assert (row.n_right, row.n_candidates) == (len(right), len(scores))


@pytest.mark.parametrize("family", CAUSAL)
def test_the_greedy_answer_is_what_the_model_writes(family: str) -> None:
    model, tokenizer = MODELS[family]()
    db = facts().select(predicates="capital")
    table = recall(model, tokenizer, db, {"capital": TEMPLATES["capital"][0]}).table
    for row in rows_of(table):
        before = f"The capital of {row.subject} is"
        ids = tokenizer(before)["input_ids"]
        ids = ids[:-1] if family == "Llama" else ids
        n = row.n_tokens
        for _ in range(n):
            with torch.no_grad():
                ids = [*ids, int(model(torch.tensor([ids])).logits[0, -1].argmax())]
        assert row.greedy == tokenizer.decode(ids[-n:]).strip()
        assert row.greedy_right == (tokenizer.decode(ids[-n:]) == f" {row.object}")


@pytest.mark.parametrize(
    "family", [pytest.param(one, marks=[] if one in QUICK else pytest.mark.slow) for one in MODELS]
)
def test_scores_depend_on_no_batch_no_cache_no_padding_side_and_no_order(family: str) -> None:
    model, tokenizer = MODELS[family]()
    db = facts()
    first = recall(model, tokenizer, db, TEMPLATES).table
    tokenizer.padding_side = "left"
    numbers = ["score", "rank", "probability", "margin"]
    ways: list[dict[str, Any]] = [{"batch_size": 3}, {"batch_size": 1, "cache": False}]
    for options in ways:
        other = recall(model, tokenizer, db, TEMPLATES, **options).table
        assert other[numbers].to_numpy(float) == pytest.approx(
            first[numbers].to_numpy(float), abs=1e-9
        )
    backwards = sorted({str(o) for _, _, o in db}, reverse=True)
    one = recall(model, tokenizer, db, TEMPLATES, candidates=backwards).table
    assert one.equals(recall(model, tokenizer, db, TEMPLATES, candidates="all").table)
    # a score is one of a sentence, whatever it is compared with
    assert one["score"].to_numpy() == pytest.approx(first["score"].to_numpy(), abs=1e-9)


@pytest.mark.parametrize("family", ["Llama", "T5"])
def test_the_best_answer_alone_is_that_of_all_scores(family: str) -> None:
    model, tokenizer = MODELS[family]()
    same_best_answers(model, tokenizer)


def test_the_best_answer_of_a_model_that_knows_facts_needs_few_scores() -> None:
    model, tokenizer = trained()
    whole, best = same_best_answers(model, tokenizer)
    assert whole.known() == facts()
    assert best.n_scored < whole.n_scored
    db, one = facts().select(predicates="capital"), {"capital": TEMPLATES["capital"][0]}
    pruned = recall(model, tokenizer, db, one, answers="best", batch_size=1)
    # the right answer, which is the best, and those whose first token is at least as likely
    needed = 0
    for row in rows_of(pruned.table):
        for _, _, name in db:
            ids = tokenizer(f"The capital of {row.subject} is {name}.")["input_ids"]
            at = len(tokenizer(f"The capital of {row.subject} is")["input_ids"])
            bound = float(log_p(model, input_ids=ids)[at - 1, ids[at]])
            needed += bound >= row.score or str(name) == row.object
    assert (pruned.n_scored, pruned.n_continuations) == (needed, 25)
    assert needed < 15


def same_best_answers(model: Any, tokenizer: Any) -> tuple[Recall, Recall]:
    db = facts()
    whole = recall(model, tokenizer, db, TEMPLATES, candidates="all")
    best = recall(model, tokenizer, db, TEMPLATES, candidates="all", answers="best", batch_size=2)
    same = ["subject", "predicate", "object", "template", "answer", "right", "greedy", "n_tokens"]
    assert best.table[same].equals(whole.table[same])
    assert best.table["score"].to_numpy() == pytest.approx(whole.table["score"].to_numpy())
    assert ((best.table["rank"] == 1) == (whole.table["rank"] == 1)).all()
    assert best.known() == whole.known()
    assert whole.n_scored == whole.n_continuations == best.n_continuations
    return whole, best


def test_left_to_right_masks_what_follows_in_the_object_too() -> None:
    model, tokenizer = MODELS["BERT"]()
    db = facts().select(predicates="capital")
    template = {"capital": "The capital of {subject} is {object}."}
    got = recall(model, tokenizer, db, template, pseudo_likelihood="left_to_right")
    assert "Kauf" in got.method
    for row in rows_of(got.table):
        ids = tokenizer(f"The capital of {row.subject} is {row.object}.")["input_ids"]
        # [CLS] the capital of X is, and at the end . [SEP]
        first, last = 6, len(ids) - 2
        hidden = [[*ids[:i], *[4] * (last - i), *ids[last:]] for i in range(first, last)]
        own = sum(
            float(log_p(model, input_ids=masked)[i, ids[i]])
            for i, masked in zip(range(first, last), hidden, strict=True)
        )
        assert row.score == pytest.approx(own, abs=1e-9)


def test_calibrated_scores_have_no_mean_over_subjects() -> None:
    model, tokenizer = MODELS["GPT-2"]()
    db = facts().select(predicates="capital")
    template = "The capital of {subject} is {object}."
    table = recall(model, tokenizer, db, {"capital": template}).table
    objects = sorted(table["object"])
    scores = np.array([
        [naive("GPT-2", model, tokenizer, f"The capital of {s} is ", o, ".") for o in objects]
        for s in table["subject"]
    ])  # fmt: skip
    calibrated = scores - scores.mean(axis=0)
    for row, own in zip(rows_of(table), calibrated, strict=True):
        at = objects.index(row.object)
        assert row.score_calibrated == pytest.approx(own[at], abs=1e-9)
        assert row.answer_calibrated == objects[int(own.argmax())]
        assert row.rank_calibrated == 1 + (np.delete(own, at) >= own[at]).sum()
        among = np.exp(own[at]) / np.exp(own).sum()
        assert row.probability_calibrated == pytest.approx(among, abs=1e-9)


def test_a_model_is_left_as_it_was() -> None:
    model, tokenizer = MODELS["GPT-2"]()
    model.train()
    db = facts()
    one = recall(model, tokenizer, db, TEMPLATES).table
    assert model.training
    # dropout is off while it is asked
    assert one.equals(recall(model, tokenizer, db, TEMPLATES).table)


class Bigrams(torch.nn.Module):
    """A model whose next token depends on the last one alone, by a table of probabilities."""

    def __init__(self, probabilities: dict[int, dict[int, float]]) -> None:
        super().__init__()
        table = torch.full((9, 9), -torch.inf, dtype=torch.float64)
        for last, following in probabilities.items():
            for token, p in following.items():
                table[last, token] = np.log(p)
        self.table = torch.nn.Parameter(table)

    def forward(self, input_ids: torch.Tensor, **_: Any) -> SimpleNamespace:
        return SimpleNamespace(logits=self.table[input_ids])


def bounded(
    model: Bigrams, sentences: list[tuple[int, ...]], right: tuple[int, ...]
) -> list[float]:
    """Probabilities that a search for the best answer computes, one candidate at a time."""
    scorer = ContinuationScorer(model, batch_size=1, cache=True)
    query = Query(tuple(Sentence(ids, 1, len(ids)) for ids in sentences), right)
    with torch.no_grad():
        (found,) = scorer.answer([query], best_only=True)
    assert found.n_scored == sum(not np.isnan(score) for score in found.scores)
    return np.exp(found.scores).tolist()


def test_a_candidate_is_omitted_only_if_its_first_token_is_less_likely_than_the_best() -> None:
    first = {1: 0.5, 2: 0.3, 3: 0.2}
    model = Bigrams({0: first, 1: {4: 0.5, 8: 0.5}, 2: {5: 1.0}, 3: {6: 1.0}})
    # the right answer has 0.5 x 0.5; the second may reach 0.3, and does; the third 0.2 at most
    got = bounded(model, [(0, 1, 4), (0, 2, 5), (0, 3, 6)], (0,))
    assert got == pytest.approx([0.25, 0.3, np.nan], nan_ok=True)


def test_each_of_several_right_answers_is_compared_with_the_best_wrong_one() -> None:
    first = {1: 0.4, 2: 0.3, 3: 0.2, 7: 0.1}
    model = Bigrams({0: first, 1: {4: 0.9, 8: 0.1}, 2: {5: 0.1, 8: 0.9}, 3: {6: 1.0}, 7: {8: 1.0}})
    # 0.36 and 0.03 are right; the third, 0.2, is behind the first and before the second, and the
    # last, 0.1 at most, is behind the best wrong one
    got = bounded(model, [(0, 1, 4), (0, 2, 5), (0, 3, 6), (0, 7, 8)], (0, 1))
    assert got == pytest.approx([0.36, 0.03, 0.2, np.nan], nan_ok=True)
