"""Questions, sentences and conclusions of the experiments on language models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from capacity.transformer import load_pretrained
from experiments.common.harness import committed
from experiments.knows import decoders, sentences, smollm2, smollm2_numbers, stores
from experiments.knows.decoders import SIZES, decoder, train
from experiments.knows.trained import Questions

PERU = {
    ("capital", "Lima"), ("currency", "Sol"), ("continent", "South America"),
    ("language", "Spanish"), ("code", "PE"), ("domain", ".pe"), ("neighbour", "Ecuador"),
    ("neighbour", "Chile"), ("neighbour", "Bolivia"), ("neighbour", "Brazil"),
    ("neighbour", "Colombia"),
}  # fmt: skip
IRON = {("symbol", "Fe"), ("number", "26"), ("group", "transition metals")}


@pytest.mark.parametrize(("store", "subject", "expected"), [
    ("countries", "Peru", PERU), ("elements", "iron", IRON),
])  # fmt: skip
def test_facts_are_written_as_sentences_need_them(
    store: str, subject: str, expected: set[tuple[str, str]]
) -> None:
    assert {(q, o) for s, q, o in stores.whole(store) if s == subject} == expected
    assert {q for _, q, _ in stores.whole(store)} == set(stores.TEMPLATES[store])


def test_all_facts_of_subjects_are_drawn_by_a_seed() -> None:
    one, same, other = (stores.facts_of("countries", 10, seed) for seed in (1, 1, 2))
    assert one == same != other
    assert len(one.subjects) == 10
    drawn = {one.name(s) for s in one.subjects}
    assert len(one) == sum(s in drawn for s, _, _ in stores.whole("countries"))
    assert min(map(stores.population, drawn)) >= stores.LEAST_POPULATION


def test_the_first_template_ends_in_its_object() -> None:
    # so that the answer follows from what is before it; there is a mark at the end
    for of in stores.TEMPLATES.values():
        for first, *_ in of.values():
            assert first.endswith("{object}.")
            assert first.index("{subject}") < first.index("{object}")


def test_a_fact_is_known_by_half_of_its_templates() -> None:
    ranks = {"a": [1, 1, 2], "b": [1, 2, 2], "c": [1, 2], "d": [2, 2]}
    rows = [
        {"store": "x", "predicate": "q", "subject": s, "object": "o", "n_tokens": 1, "rank": rank,
         "rank_calibrated": 3 - rank}
        for s, of in ranks.items() for rank in of
    ]  # fmt: skip
    plain, calibrated = (
        dict(smollm2_numbers.known_of(pd.DataFrame(rows), how)[["subject", "known"]].to_numpy())
        for how in ("plain", "calibrated")
    )
    assert plain == {"a": True, "b": False, "c": True, "d": False}
    assert calibrated == {"a": False, "b": True, "c": True, "d": True}


def test_slopes_of_known_facts_have_the_sign_that_was_put_in() -> None:
    rng = np.random.default_rng(0)
    n = 600
    frequency, tokens = 2.0 ** rng.integers(0, 6, n), rng.integers(1, 5, n)
    odds = np.log2(frequency) - 1.5 * tokens + 1
    facts = pd.DataFrame({
        "predicate": rng.choice(["p", "q"], n), "subject": rng.integers(0, 60, n),
        "known": rng.random(n) < 1 / (1 + np.exp(-odds)), "n_tokens": tokens,
        "frequency": frequency, "population": 10.0 ** rng.uniform(5, 9, n),
    })  # fmt: skip
    # a predicate of which nothing is known has no slope
    nothing = facts.assign(predicate="r", known=False)
    found = smollm2_numbers.what_decides(pd.concat([facts, nothing], ignore_index=True))
    assert found["predicates"] == ["p", "q"]
    assert found["log2_frequency"]["interval"][0] > 0.5
    assert found["n_tokens"]["interval"][1] < -1
    low, high = found["log10_population"]["interval"]
    assert low < 0 < high


def test_half_of_the_subjects_are_taught_by_all_templates() -> None:
    lesson = sentences.lesson(10)
    taught = set(lesson.taught())
    subjects = {s for s, _, _ in lesson.facts()}
    assert len(lesson.open) == len(subjects) // 2
    for s, q, o in lesson.facts():
        asked = [t.format(subject=s, object=o) in taught for t in sentences.TEMPLATES[q]]
        assert asked == [True, True, True, s in lesson.open]


def test_people_have_names_of_their_own_and_values_by_the_seed() -> None:
    one, other = sentences.people(200, 0), sentences.people(200, 1)
    assert len(one.subjects) == 200
    assert one.subjects == other.subjects
    assert len(one) == 200 * len(sentences.VALUES)
    # of 1,000 values about one in 45 is drawn twice
    assert 0 < len(one & other) < 60
    made, values, _ = sentences.vocabulary()
    assert len(set(made)) == len(made)
    assert {q: len(of) for q, of in values.items()} == sentences.VALUES


def test_no_word_is_unknown_to_the_tokenizer() -> None:
    lesson = sentences.lesson(5)
    tokenizer = sentences.tokenizer_of(lesson.taught())
    everything = [t.format(subject=s, object=o) for s, q, o in lesson.facts()
                  for t in sentences.TEMPLATES[q]]  # fmt: skip
    for ids in tokenizer(everything)["input_ids"]:
        assert ids[0] == 0
        assert 0 not in ids[1:]


def _small(n_people: int) -> tuple[Any, Any, sentences.Lesson]:
    lesson = sentences.lesson(n_people)
    tokenizer = sentences.tokenizer_of(lesson.taught())
    return decoder(SIZES["small"], len(tokenizer), 0), tokenizer, lesson


def test_a_model_that_knows_nothing_stores_no_bits() -> None:
    model, tokenizer, lesson = _small(3)
    with torch.no_grad():
        model.get_input_embeddings().weight.zero_()
    asked = Questions(model, tokenizer, lesson)
    # every token has the probability 1 / number of words: a city and a full stop, or a
    # college, the word College and a full stop
    some = [("A B C", "city", "Bozo"), ("A B C", "college", "Bozo")]
    found = asked._log2_probabilities(some)
    assert found == pytest.approx([-2 * np.log2(len(tokenizer)), -3 * np.log2(len(tokenizer))])
    assert all(row["averaged"] == row["clipped"] == 0 for row in asked.bits())
    assert not asked.answers()[["first", "last"]].any(axis=None)


def _trained(seed: int, seen: list[int]) -> tuple[Any, float, float]:
    """Embeddings after some steps, and the loss before and after."""
    model, tokenizer, lesson = _small(2)
    texts = lesson.taught()[:64]
    batch = tokenizer(texts, padding=True, padding_side="right", return_tensors="pt")
    ids, mask = batch["input_ids"], batch["attention_mask"].bool()
    before = decoders.loss_of(model, ids, mask).item()
    train(model, tokenizer, texts * 2, seed=seed, steps=6, at={6: lambda: seen.append(seed)})
    weights = model.get_input_embeddings().weight.detach()
    return weights, before, decoders.loss_of(model, ids, mask).item()


def test_training_depends_on_the_seed_alone_and_lowers_the_loss() -> None:
    seen: list[int] = []
    weights, before, after = zip(*(_trained(seed, seen) for seed in (0, 0, 1)), strict=True)
    assert seen == [0, 0, 1]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert all(b < a for a, b in zip(before, after, strict=True))


def test_a_folder_is_made_by_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoders, "train", lambda *_, **__: None)
    monkeypatch.setattr("sys.argv", ["decoders", "small", "3", "0", str(tmp_path / "made")])
    decoders.main()
    model, tokenizer = load_pretrained(tmp_path / "made", head=True)
    expected, own, _ = _small(3)
    assert torch.equal(model.get_input_embeddings().weight, expected.get_input_embeddings().weight)
    assert tokenizer("Peru lies in").input_ids == own("Peru lies in").input_ids


@pytest.mark.slow
@pytest.mark.full
def test_answers_about_continents_are_those_that_were_committed() -> None:
    task = ("answers", "countries", ("continent",), smollm2.ASKED, False)
    found = pd.DataFrame(smollm2.rows_of_task(task)["answers"])
    kept = committed("smollm2", "answers")
    kept = kept[kept["predicate"] == "continent"].reset_index(drop=True)
    assert found["subject"].tolist() == kept["subject"].tolist()
    assert (found["rank"] == kept["rank"]).mean() > 0.95
    assert found["score"].to_numpy() == pytest.approx(kept["score"].to_numpy(), abs=1e-3)
