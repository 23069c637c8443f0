"""Which dimension predicts best: held-out facts of Nations, Kinships and UMLS.

    python -m experiments.dimension.held_out --run     (three minutes on two cores)
    python -m experiments.dimension.held_out --plot

Four families are trained on the training facts of PyKEEN's splits by cross-entropy over all
entities (Lacroix et al. 2018), full-batch AdamW, at dimensions from 2 to 128. Weight decay and the
number of steps are those of the best mean reciprocal rank (MRR) on the validation facts; the MRR of
the test facts is reported, filtered as by Bordes et al. (2013), for queries (s, q, ?). The least
dimension that fits the training facts stands in the other experiment.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from capacity.embedding import QueryGraph
from capacity.embedding.witnesses.forms import FORMS, Form, Rows
from capacity.embedding.witnesses.forms import rows_of as vectors_of
from capacity.plots.theme import COLOURS, WIDTH
from capacity.progress import bar
from experiments.common.harness import REPLICATES, Tables, committed, main, rows_of
from experiments.dimension import rules
from experiments.dimension.graphs import BENCHMARKS, database, split_of

MODELS = ("CP", "ComplEx", "DistMult", "TuckER")
DIMENSIONS = (2, 4, 8, 16, 32, 64, 128)
DECAYS = (0.1, 1.0)
STEPS, EVERY, RATE = 300, 20, 0.03


class Split(NamedTuple):
    """Facts to predict, by numbers, and the answers of each that are facts of any split."""

    facts: Tensor
    known: Tensor


class Data(NamedTuple):
    """A benchmark: its training graph, and what is held out of it."""

    graph: QueryGraph
    valid: Split
    test: Split


def data(name: str) -> Data:
    """A benchmark by the entities of its training facts, which all others share."""
    db = database(name)
    graph = QueryGraph.of(db, shared=True)
    assert graph.entities is not None
    numbers: dict[str, int] = {}
    for ids, of in ((db.role_ids[0], graph.entities[0]), (db.role_ids[2], graph.entities[1])):
        numbers |= {db.name(db.tokens[i]): int(e) for i, e in zip(ids, of, strict=True)}
    relations = {db.name(i): q for q, i in enumerate(db.predicates)}
    splits = {
        split: [(numbers[s], relations[q], numbers[o]) for s, q, o in split_of(name, split)]
        for split in ("train", "valid", "test")
    }
    answers = np.zeros(graph.places, bool)
    for s, q, o in {fact for facts in splits.values() for fact in facts}:
        answers[s, q, o] = True
    held = (
        Split(torch.tensor(splits[split]), torch.from_numpy(answers[s_of, q_of]))
        for split in ("valid", "test")
        for s_of, q_of, _ in [np.array(splits[split]).T]
    )
    return Data(graph, *held)


def run(smoke: bool) -> Tables:
    """A row for each benchmark, family, dimension, weight decay and seed."""
    tasks = [*product(BENCHMARKS, MODELS, DIMENSIONS, DECAYS, REPLICATES)]
    if smoke:
        tasks = [("nations", model, d, 0.1, 0) for model in ("CP", "DistMult") for d in (2, 4)]
    with bar() as tell:
        rows = rows_of("dimension_held_out", row_of, tasks, tell, in_process=smoke)
    return {"runs": pd.DataFrame(rows)}


def row_of(task: tuple[str, str, int, float, int]) -> dict[str, Any]:
    """Train one model; return its MRR where that of the validation facts is best."""
    name, model, d, decay, seed = task
    of, form = data(name), FORMS[model]
    graph = of.graph
    # a query's sum over all entities is the same for each of its facts
    queries, query_of = np.unique(graph.placed[:, :2], axis=0, return_inverse=True)
    rows = vectors_of(graph, queries, entities=form.entities)
    facts = torch.from_numpy(query_of.ravel()), torch.from_numpy(graph.placed[:, 2])
    generator = torch.Generator().manual_seed(seed)
    factors = {
        key: (torch.randn(*shape, generator=generator) * shape[-1] ** -0.25).requires_grad_()
        for key, shape in form.shapes(rows.sizes, d).items()
    }
    optimiser = torch.optim.AdamW(factors.values(), lr=RATE, weight_decay=decay, fused=True)
    best: dict[str, Any] = {"valid": -1.0}
    for step in range(1, STEPS + 1):
        scores = _scores(form, factors, rows)
        loss = (scores.logsumexp(1)[facts[0]] - scores[facts]).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % EVERY:
            continue
        with torch.no_grad():
            valid, test = (_mrr(form, factors, graph, split) for split in (of.valid, of.test))
        if valid > best["valid"]:
            best = {"valid": valid, "test": test, "step": step, "loss": loss.item()}
    keys = ("graph", "model", "dimension", "decay", "seed")
    return {**dict(zip(keys, task, strict=True)), **best}


def _scores(form: Form, factors: Mapping[str, Tensor], rows: Rows) -> Tensor:
    return form.query(factors, rows.subjects, rows.relations) @ form.answer(factors, rows.objects).T


def _mrr(form: Form, factors: Mapping[str, Tensor], graph: QueryGraph, split: Split) -> float:
    """Mean reciprocal rank of facts among what isn't known; ties count half."""
    rows = vectors_of(graph, split.facts[:, :2].numpy(), entities=form.entities)
    scores = _scores(form, factors, rows)
    mine = scores.gather(1, split.facts[:, 2:])
    others = scores.masked_fill(split.known, -torch.inf)
    ranks = 1 + (others > mine).sum(1) + (others == mine).sum(1) / 2
    return float((1 / ranks).mean())


def numbers(tables: Tables) -> dict[str, Any]:
    """The MRR by dimension, and the dimensions at which it is best."""
    runs = tables["runs"]
    keys = ["graph", "model", "dimension", "seed"]
    # the weight decay is chosen on validation facts
    chosen = runs.loc[runs.groupby(keys).valid.idxmax()]
    least = committed("dimension_least", "runs")
    found: dict[str, Any] = {}
    for (name, model), of in chosen.groupby(["graph", "model"], sort=False):
        mean = of.groupby("dimension").test.mean()
        best = of.loc[of.groupby("seed").valid.idxmax()]
        # DistMult wasn't asked: it can't rank all of any of these graphs
        fits = least[(least.graph == name) & (least.model == model)].sufficient
        fit = None if fits.empty else int(fits.min())
        found.setdefault(str(name), {})[str(model)] = {
            "mrr": {str(d): _range(rows.test) for d, rows in of.groupby("dimension")},
            "least": fit,
            "nearest": fit and rules.nearest(mean.index.to_numpy(), fit),
            "best_mean_at": int(mean.index.to_numpy()[mean.to_numpy().argmax()]),
            "chosen": sorted(best.dimension.astype(int).tolist()),
            "chosen_mrr": _range(best.test),
        }
    mean = chosen.groupby(["graph", "model", "dimension"]).test.mean().reset_index()
    return {"graphs": found, "rules": rules.predicts(mean, least[least.model == "CP"])}


def _range(values: pd.Series[float]) -> dict[str, float]:
    """The mean over seeds, and the least and the largest."""
    return {"mean": values.mean(), "least": values.min(), "most": values.max()}


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """MRR of the test facts by dimension."""
    graphs = found["graphs"]
    figure = Figure(figsize=(WIDTH, 0.36 * WIDTH), layout="constrained")
    axes = np.ravel(figure.subplots(1, len(graphs), sharex=True))
    for ax, (name, of) in zip(axes, graphs.items(), strict=True):
        for (model, each), colour in zip(of.items(), COLOURS, strict=False):
            at = [int(d) for d in each["mrr"]]
            ax.plot(at, [x["mean"] for x in each["mrr"].values()], "o-", color=colour, label=model,
                    ms=3, lw=1)  # fmt: skip
        ax.set_xscale("log", base=2)
        ax.set_title(name)
        ax.set_xlabel("dimension")
    axes[0].set_ylabel("MRR of test facts")
    axes[-1].legend(frameon=False, fontsize=7)
    return {"mrr": figure}


if __name__ == "__main__":
    main("dimension_held_out", run, numbers, plot)
