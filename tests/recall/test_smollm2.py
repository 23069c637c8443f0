"""A language model with real weights: twelve capitals that were checked by hand."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch

from capacity import Database
from capacity.recall import Recall, recall
from experiments.common.models import smollm2

pytestmark = pytest.mark.slow
TEMPLATE = "The capital of {subject} is {object}."
# what the model writes after "The capital of ... is"
TWELVE = (
    ("Australia", "Canberra", "Sydney"), ("Canada", "Ottawa", "Ottawa"), ("Egypt", "Cairo", "the"),
    ("France", "Paris", "Paris"), ("Germany", "Berlin", "Berlin"), ("Italy", "Rome", "Rome"),
    ("Japan", "Tokyo", "Tokyo"), ("Kenya", "Nairobi", "Nairobi"), ("Norway", "Oslo", "Oslo"),
    ("Peru", "Lima", "the"), ("Russia", "Moscow", "Moscow"), ("Spain", "Madrid", "Madrid"),
)  # fmt: skip
loaded = cache(smollm2)


def asked(facts: Any, **options: Any) -> Recall:
    return recall(*loaded(), facts, {"capital": TEMPLATE}, **options)


@cache
def twelve() -> tuple[Database, Recall]:
    facts = Database.from_triples([(s, "capital", o) for s, o, _ in TWELVE])
    return facts, asked(facts)


def test_twelve_capitals_are_known_and_nine_are_written() -> None:
    facts, found = twelve()
    assert found.known(0.9) == found.known() == facts
    rows = found.table[["subject", "object", "greedy"]].itertuples(index=False, name=None)
    assert tuple(rows) == TWELVE
    assert found.table["greedy_right"].sum() == 9


def test_a_score_is_the_log_likelihood_of_the_sentence_from_the_capital_on() -> None:
    model, tokenizer = loaded()
    for row in twelve()[1].table.to_dict("records"):
        ids = tokenizer(f"The capital of {row['subject']} is {row['object']}.")["input_ids"]
        # the capital is one token, and the full stop another
        assert row["n_tokens"] == 1
        with torch.no_grad():
            log_p = model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
        own = sum(float(log_p[i - 1, ids[i]]) for i in (len(ids) - 2, len(ids) - 1))
        assert row["score"] == pytest.approx(own, abs=1e-4)


def test_permuted_capitals_are_not_known() -> None:
    permuted = [(s, "capital", TWELVE[i - 1][1]) for i, (s, _, _) in enumerate(TWELVE)]
    found = asked(permuted)
    assert len(found.known()) == 0
    assert list(found.table["answer"]) == [o for _, o, _ in TWELVE]


@pytest.mark.parametrize(
    "options", [{"batch_size": 1, "cache": False}, {"batch_size": 5}, {"answers": "best"}]
)
def test_scores_depend_on_no_batch_cache_or_search(options: dict[str, Any]) -> None:
    _, found = twelve()
    other = asked(twelve()[0], **options)
    assert other.table["score"].to_numpy() == pytest.approx(
        found.table["score"].to_numpy(), abs=1e-4
    )
    same = ["answer", "greedy", "rank"]
    assert other.table[same].equals(found.table[same])


def test_candidates_may_be_in_any_order() -> None:
    names = [o for _, o, _ in TWELVE]
    one, two = (asked(twelve()[0], candidates=some) for some in (names, names[::-1]))
    assert one.table.equals(two.table)
