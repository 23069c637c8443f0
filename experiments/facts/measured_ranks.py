"""Ranks measured, not bounded: of trained layers, of what they say, and of their databases.

    python -m experiments.facts.measured_ranks --run     (seven minutes on two cores)
    python -m experiments.facts.measured_ranks --plot

L is built by equations (5) to (8), with E alone off the domain; its rank is estimated from both
sides, by singular values above a share of the largest (`numerical_rank_estimates`). What the layer
says to all pairs of a subject and a predicate is the forward pass, another tensor with the same
bounds; what it asserts there, argmax and softmax >= tau over all tokens, is 0/1, so that its rank
is a certified interval. Then: which measures of database and layer predict best, on databases held
out, whether a run memorises?
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from capacity import Database, effective_rank_interval, rank_interval
from capacity.evaluator import (
    Threshold,
    accuracy_column,
    add_size_columns,
    compare_measures,
    decoded_facts,
    pair_logits,
)
from capacity.layer import AttentionLayer, layer_rank_upper, layer_rank_upper_paper
from capacity.layer.model.tensor import layer_tensor
from capacity.rank import numerical_rank_estimates
from capacity.sweep import Run
from experiments.common.conclusions import exact_interval, with_mean
from experiments.common.drawing import KINDS
from experiments.common.harness import (
    BEST,
    PLAIN,
    Tables,
    by_processes,
    committed,
    main,
    measure,
    paper_plan,
)
from experiments.facts.measured_ranks_plots import drawn

# singular values count above this share of the largest; the others show what it does
THRESHOLD = 1e-4
THRESHOLDS = (1e-2, 1e-3, 1e-4, 1e-6)
TAUS: tuple[Threshold, ...] = ("argmax", 0.75, 0.95, 0.99)
# the upper end of the effective rank is that of the rank in every database of these
SIZES = ("n_triples", "database_rank_bound", "database_rank_lower", "database_rank_upper",
         "effective_lower", "database_bits", "entropy_bits")  # fmt: skip
# of the layer alone; but for n_all_parameters, which knows how many tokens there are
CAPACITIES = ("layer_rank_bound", "n_parameters", "n_all_parameters")


def ranks_of(
    run: Run,
    layer: AttentionLayer,
    *,
    thresholds: tuple[float, ...] = THRESHOLDS,
    taus: tuple[Threshold, ...] = TAUS,
) -> dict[str, Any]:
    """Ranks of L, of the forward pass on all pairs, and of what the layer says."""
    db, layer = run.database, layer.double()
    L = layer_tensor(layer, db).L.numpy()
    if not np.isfinite(L).all():
        return {}
    k, q = db.subject_ids.astype(np.int64), db.predicate_ids.astype(np.int64)
    pairs = np.stack(np.meshgrid(k, q, indexing="ij"), axis=-1).reshape(-1, 2)
    forward = pair_logits(layer, pairs).reshape(len(k), len(q), db.n_tokens)
    found: dict[str, Any] = {"proposition_3_5": layer_rank_upper_paper(run.layer, len(q))}
    bounds = {"L": layer_rank_upper(run.layer, db.shape),
              "forward": layer_rank_upper(run.layer, (len(k), len(q), db.n_tokens))}  # fmt: skip
    for (name, tensor), threshold in product((("L", L), ("forward", forward)), thresholds):
        lower, upper = numerical_rank_estimates(tensor, threshold=threshold)
        # proved, where singular values can't tell
        found[f"{name}_lower_{threshold:g}"] = min(lower, bounds[name])
        found[f"{name}_upper_{threshold:g}"] = min(upper, bounds[name])
    for tau in taus:
        # (11) counts every object with a largest logit
        criterion = "argmax_paper" if tau == "argmax" else tau
        said = decoded_facts(layer, db, criterion, nonsense=True)
        interval = None if said is None else rank_interval(said, effort="quick")
        ends = (0, 0) if interval is None else (interval.lower, interval.upper)
        found[f"said_{tau}_lower"], found[f"said_{tau}_upper"] = ends
    return found


def run(smoke: bool) -> Tables:
    """Layers with their ranks, and the effective ranks of the databases of figures.py."""
    few: dict[str, Any] = {"pairs": 6, "databases": 5, "epochs": 60} if smoke else {"every": 24}
    tables: Tables = {
        kind: measure(paper_plan(0, recipe, **few).runs, ranks_of)
        for kind, recipe in (("plain", PLAIN), ("best", BEST))
    }
    some: dict[str, Any] = {"pairs": 60, "databases": 5} if smoke else {}
    plan = paper_plan(0, PLAIN, **some)
    databases = {run.database_id: run.database for run in plan.runs}
    dbs = list(databases.values())
    found = dict(by_processes("measured_ranks", _effective, dbs, in_process=smoke))
    rows = [found[number] for number in range(len(dbs))]
    tables["effective"] = pd.DataFrame(rows).assign(database_id=list(databases))
    return tables


def _effective(db: Database) -> dict[str, Any]:
    interval = effective_rank_interval(db, effort="quick")
    # of the objects of each predicate, in bits
    bits = 0.0
    for q in range(db.shape[1]):
        _, counts = np.unique(db.triples[db.triples[:, 1] == q, 2], return_counts=True)
        bits -= float(counts @ np.log2(counts / counts.sum()))
    return {"effective_lower": interval.lower, "effective_upper": interval.upper,
            "entropy_bits": max(bits, 1.0)}  # fmt: skip


def numbers(tables: Tables) -> dict[str, Any]:
    """Comparison of the ranks, and of measures as predictors."""
    effective = tables["effective"]
    closed = effective["effective_lower"] == effective["effective_upper"]
    width = effective["effective_upper"] / effective["effective_lower"]
    return {
        "threshold": THRESHOLD,
        "effective_rank_known_exactly": float(closed.mean()),
        "effective_upper_over_lower": {"median": float(width.median()), "most": float(width.max())},
        "effective_upper_over_proposition_2_1": _over_proposition_2_1(effective),
        **{kind: _compared(tables[kind]) for kind in ("plain", "best")},
        "equation_9_exceeds_a_proved_upper_bound": {
            kind: _impossible(committed("figures", kind)) for kind in ("plain", "best")
        },
        "which_measures_predict_memorising": {
            kind: {
                str(tau): _prediction(committed("figures", kind), effective, tau)
                for tau in ("argmax", 0.95)
            }
            for kind in ("plain", "best")
        },
    }


def _over_proposition_2_1(effective: pd.DataFrame) -> dict[str, Any]:
    """Ends of the effective rank over Proposition 2.1; how often its upper end is the rank's."""
    databases = committed("figures", "plain").drop_duplicates("database_id")
    table = databases.merge(effective, on="database_id")
    bound = table["database_rank_bound"]
    shared = table[["database_id"]]
    return {
        "databases": len(table),
        "lower": with_mean(table["effective_lower"] / bound, shared),
        "upper": with_mean(table["effective_upper"] / bound, shared),
        "upper_end_is_that_of_the_rank": int(
            (table["effective_upper"] == table["database_rank_upper"]).sum()
        ),
        "upper_end_is_below_the_lower_end_of_the_rank": int(
            (table["effective_upper"] < table["database_rank_lower"]).sum()
        ),
    }


def _impossible(table: pd.DataFrame) -> float:
    return float((table["layer_rank_upper"] < table["layer_rank_bound"]).mean())


def _with_count(held: pd.Series[bool], runs: pd.DataFrame) -> dict[str, Any]:
    """A share with its number of runs, for few of them, and its interval were they independent."""
    count = int(held.sum())
    exact = exact_interval(count, len(runs)) if len(runs) else None
    return {**with_mean(held, runs), "count": count, "exact": exact}


def _prediction(table: pd.DataFrame, effective: pd.DataFrame, tau: Any) -> list[Any]:
    ready = add_size_columns(table.merge(effective, on="database_id"))
    done = ready[accuracy_column(tau)] == 1
    if ready["database_id"].nunique() < 10 or done.all() or not done.any():
        return []
    pairs = list(product(SIZES, CAPACITIES))
    return compare_measures(ready, pairs, tau).assign(runs=len(ready)).to_dict(orient="records")


def _compared(table: pd.DataFrame) -> dict[str, Any]:
    lower, upper = table[f"L_lower_{THRESHOLD:g}"], table[f"L_upper_{THRESHOLD:g}"]
    forward = table[f"forward_upper_{THRESHOLD:g}"]
    forward_lower = table[f"forward_lower_{THRESHOLD:g}"]
    done = table["accuracy_p95"] == 1
    bound = table["layer_rank_bound"]
    # ties together
    third = np.minimum(bound.rank(pct=True) * 3, 2.999).astype(int)
    return {
        "runs": len(table),
        "rank_of_L_below_equation_9": {
            f"{t:g}": with_mean(table[f"L_upper_{t:g}"] < table["layer_rank_bound"], table)
            for t in THRESHOLDS
        },
        "rank_of_L_reaches_equation_9": with_mean(lower >= table["layer_rank_bound"], table),
        "rank_of_L_over_equation_9_at_most": with_mean(upper / table["layer_rank_bound"], table),
        "rank_of_L_over_sharper_bound_at_most": with_mean(upper / table["layer_rank_upper"], table),
        "rank_of_L_over_sharper_bound_at_least": with_mean(
            lower / table["layer_rank_upper"], table
        ),
        "rank_of_L_over_proposition_3_5_at_most": with_mean(
            upper / table["proposition_3_5"], table
        ),
        "memorised_at_0.95": with_mean(done, table),
        "of_those_rank_of_D_exceeds_rank_of_L": _with_count(
            (table["database_rank_lower"] > upper)[done], table[done]
        ),
        "of_the_others_rank_of_D_is_below_rank_of_L": with_mean(
            (table["database_rank_upper"] <= lower)[~done], table[~done]
        ),
        "rank_of_what_is_said_over_rank_of_forward_pass": {
            str(tau): with_mean(table[f"said_{tau}_lower"] / forward, table) for tau in TAUS
        },
        "the_same_at_most": {
            str(tau): with_mean(table[f"said_{tau}_upper"] / forward_lower, table) for tau in TAUS
        },
        "rank_of_what_is_said_is_certainly_below_the_forward_pass": {
            str(tau): with_mean(table[f"said_{tau}_upper"] < forward_lower, table) for tau in TAUS
        },
        "rank_of_argmax_over_rank_of_forward_pass_by_terciles_of_equation_9": [
            with_mean((table["said_argmax_lower"] / forward)[third == n], table[third == n])
            for n in range(3)
        ],
        "ranges_of_the_terciles": [
            [int(bound[third == n].min()), int(bound[third == n].max())] for n in range(3)
        ],
    }


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Ranks of L over equation (9), and of what is said over that of the forward pass."""
    return {"ranks": drawn({kind: tables[kind] for kind in KINDS}, found)}


if __name__ == "__main__":
    main("measured_ranks", run, numbers, plot)
