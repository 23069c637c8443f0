"""Recall of a real language model beside lm-pub-quiz: seconds, and the same answers.

    make quiz

makes an environment of its own, build/quiz, with lm-pub-quiz, and writes
benchmarks/results/recall.json. The model is SmolLM2-135M-Instruct, the facts are the capitals of
examples/countries.ttl, and the candidates are all of these. The peer has no search for the best
answer and scores whole sentences, so it is asked for a part of the subjects (capitals.py asks for
all, without it).
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import torch
from record import medians, write

from capacity import Database, load
from capacity.recall import Recall, recall
from experiments.common.models import smollm2

SUBJECTS, REPEATS, THREADS, BATCH_SIZE = 6, 3, 2, 32
TEMPLATE = "The capital of {subject} is {object}."
PREDICATE = "col:capital"


def asked(
    model: tuple[Any, Any], facts: Database, countries: Database, answers: Any, begin: str = ""
) -> Recall:
    """Ask for facts, among all capitals, by sentences that begin so."""
    names = sorted({term.text for _, _, term in countries.select(predicates=PREDICATE)})
    return recall(
        *model, facts, {PREDICATE: f"{begin}{TEMPLATE}"}, candidates=names, answers=answers,
        labels=countries, label_predicates=["col:name"], batch_size=BATCH_SIZE,
        progress=lambda *_: None,
    )  # fmt: skip


class Quiz:
    """lm-pub-quiz on the same sentences."""

    def __init__(self, model: tuple[Any, Any]) -> None:
        from lm_pub_quiz import Evaluator  # pyright: ignore[reportMissingImports]

        self._evaluator = Evaluator.from_model(model[0], model_type="CLM", tokenizer=model[1])

    def scores(self, subjects: list[str], objects: list[str]) -> np.ndarray[Any, Any]:
        """Log-likelihoods of whole sentences, one row per subject."""
        template = TEMPLATE.replace("{subject}", "[X]").replace("{object}", "[Y]")
        return np.array([
            self._evaluator.score_answers(
                template=template, subject=subject, answers=objects, reduction="sum",
                batch_size=BATCH_SIZE,
            )
            for subject in subjects
        ])  # fmt: skip


def beside(model: tuple[Any, Any], capitals: Database, countries: Database) -> dict[str, Any]:
    """A part of the subjects, by the peer too."""
    # one of each part of the alphabet
    part = capitals[:: capitals.n_facts // SUBJECTS]
    # the peer's sentences begin with this token, and ours as the tokenizer begins them
    begin = model[1].bos_token
    quiz, found = Quiz(model), asked(model, part, countries, "all", begin)
    name_of = {s.text: o.text for s, _, o in countries.select(predicates="col:name")}
    subjects = [name_of[s.text] for s, _, _ in part]
    objects = sorted({term.text for _, _, term in capitals})
    theirs = quiz.scores(subjects, objects)
    at = [objects.index(o.text) for _, _, o in part]
    right = theirs[np.arange(len(at)), at]
    wrong = np.array([np.delete(row, i) for row, i in zip(theirs, at, strict=True)])
    seconds = medians(
        {
            "all": lambda: asked(model, part, countries, "all", begin),
            "best": lambda: asked(model, part, countries, "best", begin),
            "lm-pub-quiz": lambda: quiz.scores(subjects, objects),
        },
        repeats=REPEATS,
    )
    return {
        "what": "a part of the subjects, beside lm-pub-quiz",
        "subjects": len(part.subjects),
        "candidates": len(objects),
        "same answers": int((theirs.argmax(1) == [
            objects.index(answer) for answer in found.table["answer"]
        ]).sum()),
        "same ranks": int((1 + (wrong >= right[:, None]).sum(1) == found.table["rank"]).sum()),
        # the text before the object, which both have in common, counts in the peer's scores
        "largest difference of margins": float(
            np.abs(found.table["margin"] - (right - wrong.max(1))).max()
        ),
        "CPU seconds": {name: round(value, 2) for name, value in seconds.items()},
        "lm-pub-quiz over all candidates here": round(seconds["lm-pub-quiz"] / seconds["all"], 2),
        "lm-pub-quiz over best answers here": round(seconds["lm-pub-quiz"] / seconds["best"], 2),
    }  # fmt: skip


def main() -> None:
    """Write a record; with `part`, print the comparison alone."""
    torch.set_num_threads(THREADS)
    countries = load("examples/countries.ttl")
    capitals = countries.select(predicates=PREDICATE)
    model = smollm2()
    rows = [beside(model, capitals, countries)]
    print(json.dumps(rows[0]), flush=True)
    if sys.argv[1:] == ["part"]:
        return
    write(
        "recall",
        what="SmolLM2-135M-Instruct asked for capitals: seconds, and the same answers as a peer",
        peer="lm-pub-quiz",
        rows=rows,
        packages=["torch", "transformers", "lm-pub-quiz"],
    )


if __name__ == "__main__":
    main()
