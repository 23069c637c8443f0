"""Facts written by hand, and what training needs to hold the same.

    python -m experiments.facts.by_hand --run     (two minutes on two cores)
    python -m experiments.facts.by_hand --plot

Both constructions of `capacity.layer.by_hand` for all 548 databases of the paper's
experiment, in float32 and float64, and for the same databases with each predicate also a subject.
Then layers of just those sizes are trained from random weights, and wider ones with the same heads,
by the best recipe.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from capacity import Database, Recipe
from capacity.evaluator import memorised_runs, memorises
from capacity.layer import (
    AttentionLayer,
    layer_rank_assumed,
    layer_rank_upper,
    store_in_query_key,
    store_in_value_output,
)
from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from capacity.rank import paper_bound
from capacity.sweep import Run
from experiments.common.conclusions import with_mean
from experiments.common.drawing import REFERENCE, estimates, percent, told
from experiments.common.harness import BEST, PLAIN, Tables, committed, main, measure, paper_plan

TAU = 0.99
ROLES = {"apart": "roles_apart", "both": "tokens_in_both_roles"}
WAYS = {"query-key": store_in_query_key, "value-output": store_in_value_output}
# d_model of trained layers, in units of the construction's; heads of the first need |Q| of them
WIDTHS = {"query-key": (1.0, 1.5, 2.0, 4.0), "value-output": (0.125, 0.25, 0.5, 1.0, 2.0)}


def run(smoke: bool) -> Tables:
    """Constructions for all databases, and training of the same sizes for some."""
    few: dict[str, Any] = {"pairs": 20, "databases": 6} if smoke else {}
    plan = paper_plan(0, PLAIN, **few)
    databases = {run.database_id: run.database for run in plan.runs}
    written = [row for name, db in databases.items() for row in _written(name, db)]
    some = dict(list(databases.items())[:: 3 if smoke else 12])
    recipe = Recipe(**{**BEST, **({"epochs": 30} if smoke else {})})
    made: dict[str, list[dict[str, Any]]] = {}
    runs: dict[str, Run] = {}
    for (name, db), way in product(some.items(), WAYS):
        exact = WAYS[way](db, TAU).config
        for width in WIDTHS[way][: 1 if smoke else None]:
            one = Run(
                name, db, replace(exact, d_model=max(1, round(width * exact.d_model))), 0, recipe
            )
            # with one predicate some sizes are both constructions'
            runs[one.key] = one
            made.setdefault(one.key, []).append({"way": way, "width": width})
    trained = measure(list(runs.values()), _nothing)
    rows = [
        {**row, **label} for row in trained.to_dict("records") for label in made[row["run_key"]]
    ]
    return {"written": pd.DataFrame(written), "trained": pd.DataFrame(rows)}


def _nothing(_run: Run, _layer: AttentionLayer) -> dict[str, Any]:
    return {}


def _written(name: str, db: Database) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for (roles, facts), (way, write) in product(
        (("apart", db), ("both", _mixed(db))), WAYS.items()
    ):
        layers = {kind: write(facts, TAU, dtype=kind) for kind in (torch.float32, torch.float64)}
        config = layers[torch.float64].config
        rows.append(
            {
                "database_id": name, "way": way, "roles": roles, "n_triples": facts.n_triples,
                "database_rank_bound": paper_bound(facts),
                # an unfolding's, and so a lower bound of the rank
                "n_objects": len(facts.object_ids),
                "layer_rank_bound": layer_rank_assumed(config),
                "layer_rank_upper": layer_rank_upper(config, facts.shape),
                "least_side": min(facts.shape[:2]),
                "d_model": config.d_model, "n_heads": config.n_heads,
                "d_head_qk": config.d_head_qk, "n_parameters": config.n_parameters,
                "n_embedding_parameters": config.n_embedding_parameters(facts.n_tokens),
                "float32": memorises(layers[torch.float32], facts, TAU),
                "float64": memorises(layers[torch.float64], facts, TAU),
            }
        )  # fmt: skip
    return rows


def _mixed(db: Database) -> Database:
    """The facts, and one about each predicate, with itself as the predicate of half of them."""
    facts = [tuple(db.tokens[i] for i in fact) for fact in db.token_triples.tolist()]
    predicates = [db.tokens[i] for i in db.predicate_ids.tolist()]
    objects = [db.tokens[i] for i in db.object_ids.tolist()]
    for i, q in enumerate(predicates):
        about = q if i % 2 else predicates[0]
        facts.append((q, about, objects[i % len(objects)]))
    return Database.from_triples(facts, multi="error")


def _with_lower_ends(written: pd.DataFrame) -> pd.DataFrame:
    """Add a proved lower end of each rank(D): certified by `figures`, or the number of objects."""
    known = committed("figures", "plain").drop_duplicates("database_id")
    lower = known.set_index("database_id")["database_rank_lower"]
    certified = written["database_id"].map(lower).fillna(0)
    return written.assign(least_rank=np.maximum(certified, written["n_objects"]))


def numbers(tables: Tables) -> dict[str, Any]:
    """Numbers of databases held, their sizes, and the outcome of training at these."""
    written, trained = tables["written"], tables["trained"]
    found: dict[str, Any] = {}
    for way, every in written.groupby("way"):
        part = _with_lower_ends(every[every["roles"] == "apart"])
        learnt = trained[trained["way"] == way]
        found[str(way)] = {
            **{
                ROLES[str(roles)]: {
                    "databases": len(some),
                    "memorised_float32": int(some["float32"].sum()),
                    "memorised_float64": int(some["float64"].sum()),
                }
                for roles, some in every.groupby("roles")
            },
            "mean_d_model": part["d_model"].mean(),
            "mean_n_parameters": part["n_parameters"].mean(),
            "database_rank_bound_over_equation_9": with_mean(
                part["database_rank_bound"] / part["layer_rank_bound"], part
            ),
            "rank_of_D_exceeds_equation_9": with_mean(
                part["least_rank"] > part["layer_rank_bound"], part
            ),
            # L is a matrix times a vector and a constant: `capacity.layer.by_hand`
            "rank_of_D_exceeds_the_proved_upper_bound_of_L": with_mean(
                part["least_rank"] > part["least_side"] + 1, part
            ),
            "parameters_a_triple_with_embeddings": (
                (part["n_parameters"] + part["n_embedding_parameters"]) / part["n_triples"]
            ).median(),
            "least_width_that_trains": {
                str(tau): _least_width(learnt, tau) for tau in ("argmax", TAU)
            },
            "trained_to_memorise_by_width": {
                f"{width:g}": {
                    # sizes of layers follow from their database
                    str(tau): with_mean(memorised_runs(runs, tau), runs[["database_id"]])
                    for tau in ("argmax", TAU)
                }
                for width, runs in learnt.groupby("width")
            },
        }
    return found


def _least_width(trained: pd.DataFrame, tau: Any) -> dict[str, Any]:
    """The least d_model, in units of the construction's, that training memorises with."""
    done = trained.assign(done=memorised_runs(trained, tau))
    least = done[done["done"]].groupby("database_id")["width"].min()
    n = trained["database_id"].nunique()
    return {
        "databases": n,
        **{
            f"{width:g}": int((least == width).sum()) for width in sorted(trained["width"].unique())
        },
        "none_of_these": n - len(least),
    }


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Sizes of databases over equation (9), written; shares memorised by width, trained."""
    figure = Figure(figsize=(WIDTH, 3.7))
    left, right = figure.subplots(1, 2)
    apart = tables["written"][tables["written"]["roles"] == "apart"]
    for number, way in enumerate(WAYS):
        part, of = apart[apart["way"] == way], found[way]
        left.plot(
            part["layer_rank_bound"], part["database_rank_bound"], MARKERS[number],
            color=COLOURS[number], alpha=0.4, markersize=3, markeredgewidth=0,
            label=f"{way}: {told(of['database_rank_bound_over_equation_9'], 1, interval=True)} "
            f"times (9), n = {len(part)}",
        )  # fmt: skip
        _by_width(right, way, of["trained_to_memorise_by_width"], COLOURS[number], MARKERS[number])
    top = int(apart["layer_rank_bound"].max())
    left.plot([0, top], [0, top], "--", color=REFERENCE, linewidth=1, label="equal bounds")
    exact = [found[way]["roles_apart"]["memorised_float32"] for way in WAYS]
    left.set(
        title=f"Written by hand: {exact[0]} (query-key) and {exact[1]}\n(value-output) of "
        f"{len(apart) // 2} memorised at tau = {TAU}",
        xlabel="layer rank bound (eq. 9)", ylabel="database rank bound (Prop. 2.1)",
    )  # fmt: skip
    done = [found[way]["trained_to_memorise_by_width"].get("1", {str(TAU): {}}) for way in WAYS]
    shares = [percent(one[str(TAU)]) for one in done]
    n = found["query-key"]["least_width_that_trains"][str(TAU)]["databases"]
    right.set_xscale("log", base=2)
    right.xaxis.set_major_formatter("{x:g}")
    right.set(
        title=f"Training at the same sizes: {shares[0]} (query-key)\nand {shares[1]} "
        f"(value-output) of {n} databases",
        xlabel="d_model, in units of the construction's",
        ylabel="share of databases memorised", ylim=(-0.04, 1.06),
    )  # fmt: skip
    for axes in (left, right):
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18))
    return {"sizes": figure}


def _by_width(axes: Axes, way: str, by: dict[str, Any], colour: str, marker: str) -> None:
    for tau, shift in (("argmax", 0.96), (str(TAU), 1.04)):
        estimates(
            axes, [shift * float(width) for width in by], [one[tau] for one in by.values()],
            colour=colour, marker=marker, line="-" if tau == "argmax" else ":",
            hollow=tau != "argmax",
            label=f"{way}, {tau if tau == 'argmax' else f'tau = {tau}'}",
        )  # fmt: skip


if __name__ == "__main__":
    main("by_hand", run, numbers, plot)
