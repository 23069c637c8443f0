"""Answers about all 252 countries and all elements, by plain and by calibrated scores.

    python -m experiments.knows.calibrated --run     (an hour of two cores)
    python -m experiments.knows.calibrated --plot

`every_country` searches for the best candidate alone, and `smollm2` calibrates the scores of a
sample of 32 countries. Here every candidate is scored for every subject, among all objects of the
predicate, by each template whose object comes last; *calibrated* scores are scores less their mean
over all subjects.

Fixed before the first run, after `smollm2` and `every_country`:

* E7, "calibrated scores answer more questions about countries", as H3 of `smollm2` with eight
  times as many countries: the interval of the difference, over countries, is above 0. The questions
  are those of the first template of each predicate but `every_country`'s long ones.

Fixed after E7, before the others were asked:

* E8, "calibrated scores answer fewer questions about countries": the interval of the difference,
  over countries, is below 0 for the questions that E7 hasn't (second templates, and the long
  predicates).
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from capacity import Database
from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from capacity.progress import bar
from capacity.recall import recall
from experiments.common.conclusions import verdict
from experiments.common.drawing import estimates, percent
from experiments.common.harness import Tables, main, rows_of
from experiments.knows.every_country import FEW, LONG, loaded
from experiments.knows.smollm2_numbers import share
from experiments.knows.stores import TEMPLATES, whole

BATCH_SIZE = 64
HOW = ("plain", "calibrated")


def run(smoke: bool) -> Tables:
    """The table of answers."""
    tasks = [
        (store, predicate, template, FEW if smoke else None)
        for store, of in TEMPLATES.items()
        for predicate, templates in of.items()
        for template in templates
        if template.endswith("{object}.") and (not smoke or predicate in ("continent", "group"))
    ]
    with bar() as tell:
        found = rows_of("calibrated", answers, tasks, tell, in_process=smoke)
    return {"answers": pd.DataFrame([row for each in found for row in each["rows"]])}


def answers(task: tuple[str, str, str, int | None]) -> dict[str, Any]:
    """Answers about the subjects of a predicate, or the first of them, by both scores."""
    torch.set_num_threads(1)
    store, predicate, template, most = task
    every = [fact for fact in whole(store, 0) if fact[1] == predicate]
    subjects = sorted({s for s, _, _ in every})[:most]
    found = recall(
        *loaded(),
        Database.from_triples((fact for fact in every if fact[0] in subjects), multi="keep"),
        {predicate: template}, candidates=sorted({o for _, _, o in every}), batch_size=BATCH_SIZE,
        progress=lambda *_: None,
    )  # fmt: skip
    table = found.table[["subject", "predicate", "object", "template", "n_candidates"]].assign(
        store=store, plain=found.table["right"], calibrated=found.table["right_calibrated"]
    )
    return {"rows": json.loads(table.to_json(orient="records"))}


def numbers(tables: Tables) -> dict[str, Any]:
    """Shares of questions that are answered, and the verdict."""
    table = tables["answers"].astype(dict.fromkeys(HOW, float))
    # of a pair that has several objects any right one counts
    question = ["store", "predicate", "template", "subject"]
    asked = table.groupby(question, sort=False, as_index=False).agg(
        {**dict.fromkeys(HOW, "max"), "n_candidates": "first"}
    )
    first = {templates[0] for of in TEMPLATES.values() for templates in of.values()}
    is_earlier = asked["template"].isin(first) & ~asked["predicate"].isin(LONG)
    parts = {"earlier": asked[is_earlier], "later": asked[~is_earlier], "all": asked}
    found = {
        "stores": {
            str(store): {
                str(q): {str(t): _shares(rows) for t, rows in part.groupby("template", sort=False)}
                for q, part in of.groupby("predicate", sort=False)
            }
            for store, of in asked.groupby("store", sort=False)
        },
        "totals": {
            name: {
                str(store): {"subjects": of["subject"].nunique(), **_shares(of)}
                for store, of in part.groupby("store", sort=False)
            }
            for name, part in parts.items()
        },
    }
    low = found["totals"]["earlier"]["countries"]["difference"]["interval"][0]
    high = found["totals"]["later"]["countries"]["difference"]["interval"][1]
    return {**found, "hypotheses": {"E7": verdict(low > 0), "E8": verdict(high < 0)}}


def _shares(asked: pd.DataFrame) -> dict[str, Any]:
    return {
        "questions": len(asked),
        "candidates": int(asked["n_candidates"].max()),
        **{how: share(asked[how], asked["subject"]) for how in HOW},
        "difference": share(asked["calibrated"] - asked["plain"], asked["subject"]),
    }


def plot(_tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Shares answered by predicate, by both scores."""
    figure = Figure(figsize=(WIDTH / 1.5, 5))
    axes = figure.subplots()
    rows = {
        predicate if number == 0 else f"{predicate}, {number + 1}": one
        for of in found["stores"].values()
        for predicate, templates in of.items()
        for number, one in enumerate(templates.values())
    }
    places = np.arange(len(rows))[::-1]
    for number, how in enumerate(HOW):
        estimates(
            axes, places + 0.12 - 0.24 * number, [one[how] for one in rows.values()],
            colour=COLOURS[number], marker=MARKERS[number], across=True, label=how,
        )  # fmt: skip
    total = found["totals"]["all"]["countries"]
    axes.set(
        title="Questions about all countries and elements:\nof those about countries "
        f"{percent(total['plain'])} plain, {percent(total['calibrated'])} calibrated",
        xlabel="share answered", xlim=(-0.03, 1.03), yticks=places, yticklabels=list(rows),
    )  # fmt: skip
    axes.legend()
    return {"shares": figure}


if __name__ == "__main__":
    main("calibrated", run, numbers, plot)
