"""Facts that small decoders know, trained here on facts of countries and of made-up people.

    python -m experiments.knows.trained --run     (eight minutes of one core)
    python -m experiments.knows.trained --plot

`sentences` has the facts and their templates, and `decoders` the models and their training, whose
learning rate a pilot of 600 steps with another seed chose. Fixed before the run: `CELLS`, all of
`STEPS` batches; a table by steps at `AT`. Facts are *known* by first tokens: the logit of the
object's is above those of all other values of the predicate. Of people the first `SHOWN` are asked
about, and all count for bits. Intervals are over subjects, and the two starts of a small decoder
are told apart.

* T1, "what is taught by some templates is known by one that is held out": for people who are taught
  by three templates, the share known by the fourth is at most `LESS` below that by the first, by
  the whole interval, in each start of the small decoder with 240 people.
* T2, "the description length of what is known is that of random facts": at each number of steps
  with at least `LEAST` known facts, not all of them, it is within `WITHIN` of the mean of random
  parts matched by predicate. Here answers are drawn evenly, but for those of countries.
* T3, "the additive motif": among the objects of all predicates, what heads take from the subject
  and from the predicate together brings more facts than the better of the two alone, by the whole
  interval, in each decoder with 240 people.
* T4, "feed-forwards bring facts": their part of the logit of known facts is above that of all
  heads, by the whole interval, in each decoder with 240 people.

Bits are counted as in `capacity.evaluator.stored_bits`, of the object's tokens and the full stop by
the first template, over all parameters: the average of all facts (Allen-Zhu and Li 2024, 2 bits per
parameter), facts below zero not counted (Morris et al. 2025, 3.6), and the latter for values that
were never taught. Names aren't counted. No cell is given 2 bits per parameter, since that takes
hours: that limit is *not tested*.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import torch

from capacity import Database, rank_interval
from capacity.database import description_length
from capacity.progress import bar
from capacity.recall import beside_random_parts, fact_attribution
from capacity.recall.components.prompts import Asking, Prompts, prompts_of
from capacity.recall.components.replaced import facts_right
from experiments.common.harness import Tables, main, rows_of
from experiments.knows.decoders import BATCH, SIZES, STEPS, decoder, train
from experiments.knows.sentences import (
    SEED,
    TEMPLATES,
    VALUES,
    Lesson,
    lesson,
    people,
    tokenizer_of,
    words_of,
)
from experiments.knows.trained_numbers import numbers
from experiments.knows.trained_plots import plot

# size, people, start
CELLS = (
    *(("small", n, start) for n in (60, 240) for start in (0, 1)),
    ("small", 960, 0), ("medium", 240, 0), ("large", 240, 0),
)  # fmt: skip
AT = (75, 150, 300, STEPS)
SHOWN, DRAWS = 60, 40
# size, number of people, start, snapshots
Task: TypeAlias = tuple[str, int, int, tuple[int, ...]]


def run(smoke: bool) -> Tables:
    """Tables by steps, of answers, of bits and of components."""
    tasks: list[Task] = (
        [("small", 12, start, (20, 100)) for start in (0, 1)]
        if smoke
        else [(*cell, AT) for cell in CELLS]
    )
    with bar() as tell:
        found = rows_of("trained", rows_of_task, tasks, tell, in_process=smoke)
    return {name: pd.DataFrame([row for each in found for row in each[name]]) for name in found[0]}


def rows_of_task(task: Task) -> dict[str, Any]:
    """Train one decoder, and measure it on the way and at the end."""
    torch.set_num_threads(1)
    name, n_people, start, at = task
    taught = lesson(n_people)
    sentences, n_facts = taught.taught(), len([*taught.facts()])
    tokenizer = tokenizer_of(sentences)
    model = decoder(SIZES[name], len(tokenizer), start)
    cell = {
        "size": name, "people": n_people, "start": start,
        "n_parameters": model.num_parameters(),
    }  # fmt: skip
    asked = Questions(model, tokenizer, taught)
    course: list[dict[Any, Any]] = []
    answers: list[dict[Any, Any]] = []

    def measure(step: int) -> None:
        rows = asked.answers()
        course.extend(
            {**of, "step": step, "exposures": step * BATCH / n_facts} for of in asked.sizes(rows)
        )
        if step == at[-1]:
            answers.extend(rows.to_dict("records"))

    train(
        model, tokenizer, sentences, seed=start, steps=at[-1],
        at={step: lambda step=step: measure(step) for step in at},
    )  # fmt: skip
    tables = {"course": course, "answers": answers, "bits": asked.bits(), **asked.components()}
    return {key: [{**cell, **row} for row in rows] for key, rows in tables.items()}


class Questions:
    """The questions for a decoder.

    Parameters
    ----------
    model, tokenizer : PreTrainedModel, tokenizer
        The decoder, which is asked as it is at the time.
    taught : Lesson
        What it is taught.
    """

    def __init__(self, model: Any, tokenizer: Any, taught: Lesson) -> None:
        self._model, self._tokenizer, self._taught = model, tokenizer, taught
        every = [*words_of(taught.stores["people"])]
        shown = set(list(dict.fromkeys(s for s, _, _ in every))[:SHOWN])
        self.stores = {
            "countries": taught.stores["countries"],
            "people": Database.from_triples(fact for fact in every if fact[0] in shown),
        }
        self._prompts = {
            (store, i): self._prompts_of(db, i) for store, db in self.stores.items() for i in (0, 3)
        }

    def _templates(self, db: Database, i: int) -> dict[str, str]:
        return {db.name(q): TEMPLATES[db.name(q)][i] for q in db.predicates}

    def _prompts_of(self, db: Database, i: int) -> list[Prompts]:
        how = Asking(self._templates(db, i))
        return prompts_of(self._model, self._tokenizer, db, how, caller="trained")[1]

    def answers(self) -> pd.DataFrame:
        """One row for each fact, known by the first template and by the last."""
        rows: list[dict[str, Any]] = []
        for store, db in self.stores.items():
            facts = [*words_of(db)]
            known = np.zeros((2, len(facts)), bool)
            for j, i in enumerate((0, 3)):
                for prompts in self._prompts[store, i]:
                    known[j, prompts.facts] = facts_right(self._model, prompts, BATCH)
            rows += [
                {"store": store, "subject": s, "predicate": q, "object": o,
                 "open": s in self._taught.open, "first": bool(a), "last": bool(b)}
                for (s, q, o), a, b in zip(facts, *known, strict=True)
            ]  # fmt: skip
        return pd.DataFrame(rows)

    def sizes(self, answers: pd.DataFrame) -> list[dict[str, Any]]:
        """How large what is known is, by store, beside random parts matched by predicate."""
        rows: list[dict[str, Any]] = []
        for store, of in answers.groupby("store", sort=False):
            row: dict[str, Any] = {
                "store": store,
                "facts": len(of),
                "known": int(of["first"].sum()),
            }
            if row["known"]:
                db = self.stores[str(store)]
                known = db.subset(of["first"].to_numpy())
                found = rank_interval(known).uninterrupted()
                beside = beside_random_parts(
                    known, db, draws=DRAWS, seed=SEED, match=["predicate"],
                    measures=["rank", "description_length"], progress=_silent,
                ).set_index("measure")["mean"]  # fmt: skip
                row |= {
                    "rank_lower": found.lower, "rank_upper": found.upper,
                    "description_length": description_length(known).bits,
                    **{f"random_{name}": float(value) for name, value in beside.items()},
                }  # fmt: skip
            rows.append(row)
        return rows

    def bits(self) -> list[dict[str, Any]]:
        """Bits that are stored of each store, and of people's values that weren't taught."""
        whole = self._taught.stores
        n = len(whole["people"].subjects)
        stores = {**whole, "people, values not taught": people(n, 1)}
        rows: list[dict[str, Any]] = []
        for store, db in stores.items():
            facts = [*words_of(db)]
            values = {db.name(q): set() for q in db.predicates}
            for _, q, o in facts:
                values[q].add(o)
            content = np.array([np.log2(VALUES.get(q, len(values[q]))) for _, q, _ in facts])
            gain = content + self._log2_probabilities(facts)
            rows.append({
                "store": store, "facts": len(facts), "content": float(content.sum()),
                "averaged": max(0.0, float(gain.sum())),
                "clipped": float(np.maximum(gain, 0.0).sum()),
            })  # fmt: skip
        return rows

    @torch.no_grad()
    def _log2_probabilities(self, facts: list[tuple[str, str, str]]) -> np.ndarray[Any, Any]:
        """Compute log2 p of what follows the text before the object, up to the end."""
        found: list[float] = []
        for at in range(0, len(facts), BATCH):
            part = facts[at : at + BATCH]
            texts = [TEMPLATES[q][0].format(subject=s, object=o) for s, q, o in part]
            before = [TEMPLATES[q][0].partition("{object}")[0].format(subject=s)
                      for s, q, _ in part]  # fmt: skip
            inputs = self._tokenizer(texts, padding=True, padding_side="right", return_tensors="pt")
            log_p = self._model(**inputs).logits.double().log_softmax(-1)[:, :-1]
            ids = inputs["input_ids"][:, 1:]
            own = log_p.gather(2, ids[..., None])[..., 0]
            for i, text in enumerate(before):
                first = len(self._tokenizer(text)["input_ids"]) - 1
                last = int(inputs["attention_mask"][i].sum()) - 1
                found.append(float(own[i, first:last].sum()) / np.log(2))
        return np.array(found)

    def components(self) -> dict[str, list[dict[str, Any]]]:
        """Parts of known facts' logits, by layer, and what sums bring among all objects."""
        sums: list[pd.DataFrame] = []
        layers: list[pd.DataFrame] = []
        for store, db in self.stores.items():
            asked = (self._model, self._tokenizer, db, self._templates(db, 0))
            for candidates in ("predicate", "all"):
                found = fact_attribution(*asked, candidates=candidates, progress=_silent)
                sums.append(found.sums.assign(store=store, candidates=candidates))
                if candidates == "predicate" and len(found.known):
                    layers.append(found.by_layer().assign(store=store))
        columns = ["store", "candidates", "predicate", "subject", "sum", "part", "right"]
        return {
            "sums": pd.concat(sums)[columns].to_dict("records"),
            "layers": pd.concat(layers).astype({"layer": int}).to_dict("records"),
        }  # type: ignore[return-value]


def _silent(*_: object) -> None:
    """Workers draw no bars."""


if __name__ == "__main__":
    main("trained", run, numbers, plot)
