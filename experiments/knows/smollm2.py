"""The facts that a real language model knows of countries and elements: where, and their size.

    python -m experiments.knows.smollm2 --run     (half an hour of one core)
    python -m experiments.knows.smollm2 --plot

SmolLM2-135M-Instruct (`experiments.common.models`) is asked for the facts of `stores` by their
templates, whole objects among the objects of the predicate (`capacity.recall`). Attribution, heads'
tables, ablations and mean attention compare first tokens, by the first template of a predicate.

Fixed before the run: `ASKED` countries and as many elements, drawn by `SEED` from those of
`stores`, since each subject is asked about every candidate; where facts are is looked for in
`LOOKED` countries. A fact is *known* if its object is first by at least half of the templates. It
is known *calibrated* if that is so of scores less their mean over subjects. Intervals are over
countries.

* H1, "matched by predicate and by frequency of the answer, what is known has the description length
  of random facts": the ratio to the mean of random parts is within `WITHIN` of 1, known plainly
  and calibrated. Neighbours, of which a country has several, have no such length and are left out.
* H2, "matched by predicate alone, it is shorter": at most 2.5 % of the random parts are as short.
* H3, "calibrated scores know more facts": the interval of the difference is above 0.
* H4 to H6, "a fact is known the more often, the more frequent its answer (H4), the fewer its tokens
  (H5) and the larger the country (H6)": the interval of the slope in a logistic regression, with a
  constant for each predicate, is above 0 (H5: below 0). Predicates of which all or no facts are
  known are left out. The frequency is that among all countries of the store.
* H7, "the heads that attribution names are needed": without three heads, chosen on half of the
  countries, the share of known facts of the other half that is kept has an interval below that of
  random sets.
* H8, "late heads bring facts": of the known facts' largest heads more than half are in the last
  third of the layers, by the whole interval.
* H9, "one head holds half of what is known of capitals": the table of the head with the largest
  part, less its mean over countries, holds at least half as many as the model knows.
* H10, "queries and keys aren't needed for capitals": with the mean attention of other countries in
  all layers, `KEPT` or more of the known ones are kept, by the whole interval.

H7 to H10 were seen before with 60 countries, the most populous ones (docs/how-to/where-facts-are),
and are asked of others here. The rest wasn't looked at before.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import pandas as pd
import torch

from capacity import Database
from capacity.progress import bar
from capacity.recall import (
    Measure,
    ablation_test,
    beside_random_parts,
    fact_attribution,
    head_table,
    mean_attention,
    recall,
)
from experiments.common.harness import Tables, main, rows_of
from experiments.common.models import smollm2
from experiments.knows.smollm2_numbers import KEPT, MULTIPLE, WITHIN, known_of, numbers
from experiments.knows.smollm2_plots import plot
from experiments.knows.stores import TEMPLATES, facts_of, population, whole

__all__ = ["KEPT", "WITHIN"]
ASKED, LOOKED, SEED = 32, 48, 61
# codes and domains are left out, since their first tokens hardly differ
WHERE = ("capital", "currency", "continent", "language", "neighbour")
# whose facts need both the subject and the predicate
TOGETHER = ("capital", "currency", "continent", "language")
FIXED = ("capital", "currency", "continent")
LAYERS = (0, 1, 2, 3, 5, 8, 11, 14, 17, 20, 23, 26, 29)
HEADS, N_HEADS, N_RANDOM = 2, (1, 3), 8
# what the tests ask for
SMOKE = ("capital", "continent")
DRAWS, DRAWS_OF_DIMENSION = 200, 5
# the model, its tokenizer, facts, and their first templates
Asked: TypeAlias = tuple[Any, Any, Database, dict[str, str]]
# what is done, store, predicates, number of subjects, whether it is for the tests
Task: TypeAlias = tuple[str, str, tuple[str, ...], int, bool]


def run(smoke: bool) -> Tables:
    """Tables of answers, of random parts and of components."""
    predicates: dict[str, tuple[str, ...]] = (
        {"countries": SMOKE, "elements": ("group",)} if smoke
        else {store: tuple(of) for store, of in TEMPLATES.items()}
    )  # fmt: skip
    where, together, fixed = [SMOKE[:1], SMOKE, SMOKE[:1]] if smoke else [WHERE, TOGETHER, FIXED]
    asked, looked = (6, 8) if smoke else (ASKED, LOOKED)
    tasks: list[Task] = [
        *(("answers", store, (q,), asked, smoke) for store, of in predicates.items() for q in of),
        *(("attribution", "countries", (q,), looked, smoke) for q in where),
        ("together", "countries", together, looked, smoke),
        ("ablation", "countries", together, looked, smoke),
        *(("mean", "countries", (q,), looked, smoke) for q in fixed),
    ]
    with bar() as tell:
        found = rows_of("smollm2", rows_of_task, tasks, tell, in_process=smoke)
    names = dict.fromkeys(name for each in found for name in each)
    tables = {
        name: pd.DataFrame([row for each in found for row in each.get(name, ())]) for name in names
    }
    draws = (10, 2) if smoke else (DRAWS, DRAWS_OF_DIMENSION)
    return {**tables, "parts": random_parts(tables["answers"], *draws)}


def rows_of_task(task: Task) -> dict[str, Any]:
    """Rows of some tables, by their names."""
    torch.set_num_threads(1)
    what, store, predicates, n_subjects, few = task
    facts = facts_of(store, n_subjects, SEED).select(predicates=list(predicates))
    first = {q: TEMPLATES[store][q][0] for q in predicates}
    if what == "answers":
        tables = answers(store, facts, predicates[0])
    else:
        tables = KINDS[what]((*loaded(), facts, first), few)
    return {name: _records(table) for name, table in tables.items()}


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows that JSON can keep."""
    return json.loads(table.to_json(orient="records", double_precision=15))  # type: ignore[no-any-return]


loaded = cache(smollm2)


def answers(store: str, facts: Database, predicate: str) -> Tables:
    """The answers about the facts of a predicate, by each template."""
    found = recall(*loaded(), facts, {predicate: TEMPLATES[store][predicate]}, progress=_silent)
    table = found.table.drop(columns=["fact", "greedy"]).assign(store=store)
    counts = Counter(o for _, q, o in whole(store) if q == predicate)
    table["frequency"] = table["object"].map(counts)
    if store == "countries":
        table["population"] = table["subject"].map(population)
    return {"answers": table}


def attribution(asked: Asked, few: bool) -> Tables:
    """Parts of components, the largest head of each fact, and the tables of the largest ones."""
    found = fact_attribution(*asked, progress=_silent)
    place = ["predicate", "component", "layer", "head"]
    right = found.by_component(known=False)[[*place, "right_calibrated", "n"]]
    components = found.by_component().merge(right, on=place, suffixes=("_known", ""))
    heads = found.table[found.table["component"] == "head"]
    columns = ["predicate", "subject", "object", "layer", "head", "part", "from_subject"]
    largest = heads.loc[heads.groupby(["fact", "template"])["part"].idxmax(), ["fact", *columns]]
    model = found.sums[found.sums["sum"] == "model"][["fact", "right"]]
    facts = largest.merge(model, on="fact").drop(columns="fact")
    return {
        "components": components,
        "layers": found.by_layer(),
        "largest": facts.rename(columns={"right": "known"}),
        "held": _held(asked, found.heads(1 if few else HEADS), components),
        "checks": pd.DataFrame([{"off": found.off}]),
    }


def _held(asked: Asked, heads: list[tuple[int, int]], components: pd.DataFrame) -> pd.DataFrame:
    """Tables of heads, of all heads of the first one's layer, and of the largest feed-forward."""
    feed_forward = components[components["component"] == "feed_forward"]["layer"].iloc[0]
    options: dict[str, dict[str, Any]] = {
        **{f"head {head} of layer {layer}": {"layer": layer, "head": head}
           for layer, head in heads},
        f"heads of layer {heads[0][0]}": {"layer": heads[0][0]},
        f"feed-forward of layer {feed_forward}": {
            "layer": int(feed_forward), "component": "feed_forward"},
    }  # fmt: skip
    return pd.concat(
        [
            table.summary().assign(place=place, rank_assumed=table.rank_assumed)
            for place, option in options.items()
            for table in [head_table(*asked, **option, progress=_silent)]
        ],
        ignore_index=True,
    )


def together(asked: Asked, _: bool) -> Tables:
    """Facts that sums of components bring among the objects of all predicates."""
    sums = fact_attribution(*asked, candidates="all", progress=_silent).sums
    return {"sums": sums.drop(columns=["fact", "template"])}


def ablation(asked: Asked, few: bool) -> Tables:
    """Measure which known facts are kept without heads."""
    numbers, n_random = ([1], 2) if few else (N_HEADS, N_RANDOM)
    found = ablation_test(*asked, n_heads=numbers, n_random=n_random, seed=SEED, progress=_silent)
    return {
        "ablation": found.table,
        "ablated": pd.DataFrame(found.heads, columns=["layer", "head"]),
    }


def mean(asked: Asked, few: bool) -> Tables:
    """Measure which known facts are kept with mean attention."""
    layers = LAYERS[:1] if few else LAYERS
    found = mean_attention(*asked, layers=layers, seed=SEED, progress=_silent)
    return {"mean": found.table.drop(columns="template")}


KINDS: dict[str, Callable[[Asked, bool], Tables]] = {
    "attribution": attribution, "together": together, "ablation": ablation, "mean": mean,
}  # fmt: skip


def _silent(*_: object) -> None:
    """Workers draw no bars."""


def random_parts(table: pd.DataFrame, draws: int, draws_of_dimension: int) -> pd.DataFrame:
    """Compare the known facts with random parts of those asked, without multi-valued predicates."""
    drawn: tuple[tuple[tuple[Measure, ...], int], ...] = (
        (("bound", "rank", "description_length"), draws),
        (("dimension",), draws_of_dimension),
    )
    found: list[pd.DataFrame] = []
    functional = table[~table["predicate"].isin(MULTIPLE)]
    for store, of in functional.groupby("store", sort=False):
        for how in ("plain", "calibrated"):
            facts = known_of(of, how)
            every, known = (
                Database.from_triples(rows[["subject", "predicate", "object"]].itertuples(
                    index=False, name=None))
                for rows in (facts, facts[facts["known"]])
            )  # fmt: skip
            for measures, n in drawn:
                beside = beside_random_parts(
                    known, every, draws=n, seed=SEED, measures=measures, progress=_silent
                )
                found.append(beside.assign(store=store, how=how, n_known=len(known), draws=n))
    return pd.concat(found, ignore_index=True)


if __name__ == "__main__":
    main("smollm2", run, numbers, plot)
