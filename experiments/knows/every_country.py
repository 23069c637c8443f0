"""Which facts a real language model knows of all 252 countries, and of all elements.

    python -m experiments.knows.every_country --run     (half an hour of two cores)
    python -m experiments.knows.every_country --plot

`smollm2` asks SmolLM2-135M about a sample, and scores every candidate for every subject. Here all
subjects are asked, among all objects of the predicate, and the best candidate alone is searched
for, so that scores aren't calibrated. Templates are those of `stores` whose object comes last,
since others need a sentence for each subject and candidate. Of `LONG` predicates it is the first
alone, which was decided during the run, before any answer was looked at. A question is *answered*
if its best candidate is a right one, and a fact of a predicate with one object is *known* if that
is so by at least half of the templates.

Fixed before the run, after `smollm2`, whose H1, H2 and H4 to H6 are asked again with eight times as
many countries (of `smollm2`, 32 countries are among these):

* E1, "matched by predicate and by the frequency of the answer, what is known has the description
  length of random facts": within `WITHIN` of the mean of `DRAWS` random parts, in both stores.
* E2, "matched by predicate alone, it is shorter": at most `SHORT` of the random parts are as short,
  of countries.
* E3 to E5, "a fact is known the more often, the more frequent its answer (E3), the fewer its tokens
  (E4) and the larger the country (E5)": as H4 to H6 of `smollm2`, of countries in which somebody
  lives, and without neighbours.
* E6, "of the 50 largest countries more is known than of the 50 smallest in which somebody lives":
  the interval of the difference of the shares of facts is above 0.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from capacity import Database
from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from capacity.progress import bar
from capacity.recall import Measure, beside_random_parts, recall
from experiments.common.conclusions import slopes_of, verdict
from experiments.common.drawing import estimates, percent
from experiments.common.harness import Tables, main, rows_of
from experiments.common.models import smollm2
from experiments.knows.smollm2_numbers import MULTIPLE, SHORT, WITHIN, parts_of, share, what_decides
from experiments.knows.stores import TEMPLATES, population, whole

DRAWS, DRAWS_OF_DIMENSION, SEED = 200, 5, 62
# subjects of a task, and those of a test
CHUNK, FEW = 42, 6
# predicates of one template: their answers are so alike that each takes the time of five others
LONG = ("domain", "neighbour")
# of the largest and of the smallest countries
N_ENDS = 50
# store, predicate, template, subjects
Task: TypeAlias = tuple[str, str, str, tuple[str, ...]]
loaded = cache(smollm2)


def run(smoke: bool) -> Tables:
    """Tables of answers, and of random parts."""
    tasks = list(_tasks(smoke))
    with bar() as tell:
        found = rows_of("every_country", answers, tasks, tell, in_process=smoke)
    table = pd.DataFrame([row for each in found for row in each["rows"]])
    draws = (10, 2) if smoke else (DRAWS, DRAWS_OF_DIMENSION)
    return {"answers": table, "parts": random_parts(table, *draws)}


def _tasks(smoke: bool) -> list[Task]:
    tasks: list[Task] = []
    for store, of in TEMPLATES.items():
        facts = whole(store, 0)
        for predicate, templates in of.items():
            subjects = sorted({s for s, q, _ in facts if q == predicate})
            chunks = [tuple(subjects[i : i + CHUNK]) for i in range(0, len(subjects), CHUNK)]
            last = [template for template in templates if template.endswith("{object}.")]
            for template in last[:1] if predicate in LONG else last:
                tasks += [(store, predicate, template, chunk) for chunk in chunks]
    if not smoke:
        return tasks
    some = [
        next(task for task in tasks if task[1] == q) for q in ("capital", "continent", "symbol")
    ]
    return [(store, q, template, subjects[:FEW]) for store, q, template, subjects in some]


def answers(task: Task) -> dict[str, Any]:
    """Answers about some subjects, among all objects of the predicate."""
    torch.set_num_threads(1)
    store, predicate, template, subjects = task
    every = [fact for fact in whole(store, 0) if fact[1] == predicate]
    counts = Counter(o for _, _, o in every)
    asked = Database.from_triples((f for f in every if f[0] in subjects), multi="keep")
    found = recall(
        *loaded(), asked, {predicate: template}, candidates=sorted(counts), answers="best",
        progress=lambda *_: None,
    )  # fmt: skip
    columns = ["subject", "predicate", "object", "template", "n_tokens", "n_right", "n_candidates",
               "answer", "right"]  # fmt: skip
    table = found.table[columns].assign(store=store)
    # of several right objects all rows tell the same answer, but for those that weren't scored
    of_subject = table.groupby("subject")[["answer", "right"]].transform("first")
    table[["answer", "right"]] = of_subject
    table["right"] = table["right"].fillna(value=False).astype(bool)
    table["frequency"] = table["object"].map(counts)
    if store == "countries":
        table["population"] = table["subject"].map(population)
    return {"rows": json.loads(table.to_json(orient="records"))}


def known_facts(table: pd.DataFrame) -> pd.DataFrame:
    """One row for each subject and predicate, with ``known``, a fact where there is one object."""
    rows = table.groupby(["store", "predicate", "subject"], sort=False, as_index=False).agg(
        object=("object", "first"), n_tokens=("n_tokens", "first"), known=("right", "mean"),
        frequency=("frequency", "first"), population=("population", "first"),
    )  # fmt: skip
    return rows.assign(known=rows["known"] >= 1 / 2)


def random_parts(table: pd.DataFrame, draws: int, draws_of_dimension: int) -> pd.DataFrame:
    """Compare the known facts with random parts of those asked, without multi-valued predicates."""
    drawn: tuple[tuple[tuple[Measure, ...], int], ...] = (
        (("bound", "rank", "description_length"), draws),
        (("dimension",), draws_of_dimension),
    )
    found: list[pd.DataFrame] = []
    facts = known_facts(table[~table["predicate"].isin(MULTIPLE)])
    for store, of in facts.groupby("store", sort=False):
        columns = ["subject", "predicate", "object"]
        every, known = (
            Database.from_triples(rows[columns].itertuples(index=False, name=None))
            for rows in (of, of[of["known"]])
        )
        for measures, n in drawn:
            beside = beside_random_parts(
                known, every, draws=n, seed=SEED, measures=measures, progress=lambda *_: None
            )
            found.append(beside.assign(store=store, how="plain", n_known=len(known), draws=n))
    return pd.concat(found, ignore_index=True)


def numbers(tables: Tables) -> dict[str, Any]:
    """Conclude which facts are known, their size, and what decides."""
    table = tables["answers"]
    facts = known_facts(table)
    lived_in = facts[facts["population"] > 0]
    found: dict[str, Any] = {
        "stores": {
            str(store): {str(q): _of_predicate(part, table) for q, part in
                         of.groupby("predicate", sort=False)}
            for store, of in facts.groupby("store", sort=False)
        },
        "totals": {
            str(store): {"subjects": of["subject"].nunique(), **share(of["known"], of["subject"])}
            for store, of in facts.groupby("store", sort=False)
        },
        "parts": parts_of(tables["parts"]),
        "decides": what_decides(lived_in[~lived_in["predicate"].isin(MULTIPLE)]),
        "classes": _by_population(lived_in),
        "ends": _ends(lived_in),
    }  # fmt: skip
    return {**found, "hypotheses": _hypotheses(found)}


def _of_predicate(facts: pd.DataFrame, table: pd.DataFrame) -> dict[str, Any]:
    predicate, store = facts["predicate"].iloc[0], facts["store"].iloc[0]
    asked = table[(table["predicate"] == predicate) & (table["store"] == store)]
    once = asked.drop_duplicates(["subject", "template"])
    return {
        "questions": len(facts),
        "candidates": int(asked["n_candidates"].iloc[0]),
        "known": share(facts["known"], facts["subject"]),
        "templates": once.groupby("template", sort=False)["right"].mean().to_dict(),
        # answers that the model gives most, with the share of subjects
        "most": once["answer"].value_counts(normalize=True).head(3).to_dict(),
    }


def _by_population(facts: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Share known by classes of the logarithm of the population."""
    logarithms = np.log10(facts["population"])
    classes = pd.Series(pd.cut(logarithms, [0, 4, 5, 6, 7, 8, 10], right=False), facts.index)
    return {
        str(place.left): share(of["known"], of["subject"])
        for place, of in facts.groupby(classes, observed=True)
    }


def _ends(facts: pd.DataFrame) -> dict[str, Any]:
    """Shares known of the largest and of the smallest countries, and the difference."""
    countries = facts.groupby("subject")["population"].first().sort_values()
    n = min(N_ENDS, len(countries) // 2)
    small, large = (
        facts[facts["subject"].isin(of)] for of in (countries.index[:n], countries.index[-n:])
    )
    both = pd.concat([small.assign(large=0.0), large.assign(large=1.0)]).astype({"known": float})
    return {
        "n": n,
        "largest": share(large["known"], large["subject"]),
        "smallest": share(small["known"], small["subject"]),
        "difference": slopes_of(both, "known ~ large", ["large"], clusters=["subject"])["large"],
    }


def _hypotheses(found: dict[str, Any]) -> dict[str, str]:
    """Verdicts by the rules that were fixed before the run."""
    of = {store: each["plain"] for store, each in found["parts"].items()}
    ratios = [each["answers"]["description_length"]["ratio"] for each in of.values()]
    short = of["countries"]["predicate"]["description_length"]["share_at_most"]
    slopes = {"E3": ("log2_frequency", 1), "E4": ("n_tokens", -1), "E5": ("log10_population", 1)}
    verdicts = {
        "E1": verdict(all(abs(ratio - 1) <= WITHIN for ratio in ratios)),
        "E2": verdict(short <= SHORT),
    }
    for name, (term, sign) in slopes.items():
        slope = found["decides"].get(term)
        verdicts[name] = verdict(
            slope is not None and min(sign * end for end in slope["interval"]) > 0
        )
    return {**verdicts, "E6": verdict(found["ends"]["difference"]["interval"][0] > 0)}


def plot(_tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Shares known by predicate, and by the population of the country."""
    figure = Figure(figsize=(WIDTH, 3.2))
    left, right = figure.subplots(1, 2)
    countries = found["stores"]["countries"]
    places = np.arange(len(countries))[::-1]
    estimates(
        left, places, [of["known"] for of in countries.values()],
        colour=COLOURS[0], marker=MARKERS[0], across=True,
    )  # fmt: skip
    left.set(
        title="Facts of all 252 countries that\nSmolLM2-135M knows: "
        f"{percent(found['totals']['countries'])} of all",
        xlabel="share known", xlim=(-0.03, 1.03), yticks=places, yticklabels=list(countries),
    )  # fmt: skip
    classes = found["classes"]
    at = np.arange(len(classes))
    estimates(right, at, list(classes.values()), colour=COLOURS[1], marker=MARKERS[1])
    right.set(
        title=f"It knows {percent(found['ends']['largest'])} of the largest countries\n"
        f"and {percent(found['ends']['smallest'])} of the smallest",
        xlabel="population, from", ylabel="share known", ylim=(-0.03, 1.03), xticks=at,
        xticklabels=[f"$10^{{{float(low):.0f}}}$" if float(low) else "1" for low in classes],
    )  # fmt: skip
    return {"known": figure}


if __name__ == "__main__":
    main("every_country", run, numbers, plot)
