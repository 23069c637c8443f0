"""Whether the rank that argmax needs foretells what layers memorise, better than exact rank.

    python -m experiments.facts.argmax_rank --run     (twelve minutes on two cores)
    python -m experiments.facts.argmax_rank --plot

Equation (10) of Wong 2025 compares the rank of D, whose scores are exactly 0 and 1, with the rank
of L. A layer has only to put the right object first, or at softmax >= tau. For the 548 databases of
the paper's kind two other ranks are bounded from above by training: the least dimension d of CP
whose largest score is the fact (`capacity.dimension`; integers, proved), and the least d with all
factors between -1 and 1 whose softmax is at least 0.95 (double precision). Then the measures of
`measured_ranks` are compared with these two, on databases held out. Steps, seeds and the bound of 1
were fixed before the run.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import pandas as pd
import torch
from matplotlib.figure import Figure

from capacity import Database, dimension
from capacity.embedding import QueryGraph
from capacity.embedding.witnesses.forms import FORMS
from capacity.embedding.witnesses.forms import rows_of as vectors_of
from capacity.evaluator import accuracy_column, add_size_columns, compare_measures
from capacity.plots.theme import COLOURS, WIDTH
from capacity.progress import bar
from experiments.common.drawing import KINDS
from experiments.common.harness import PLAIN, Tables, committed, main, paper_plan, rows_of
from experiments.facts.measured_ranks import CAPACITIES, SIZES

TAU, BOUND, STEPS, RATE = 0.95, 1.0, 400, 0.05
# what is compared beside the measures of `measured_ranks`
RANKS = ("argmax_rank", "tau_rank")


def run(smoke: bool) -> Tables:
    """A row for each database."""
    some: dict[str, Any] = {"pairs": 60, "databases": 5} if smoke else {}
    ids = sorted({run.database_id for run in paper_plan(0, PLAIN, **some).runs})
    tasks = [(one, 5 if smoke else 548) for one in ids]
    with bar() as tell:
        rows = rows_of("argmax_rank", row_of, tasks, tell, in_process=smoke)
    return {"databases": pd.DataFrame(rows)}


def row_of(task: tuple[str, int]) -> dict[str, Any]:
    """The ranks of one database."""
    database_id, count = task
    db = _databases(count)[database_id]
    found = dimension(db, "CP", shared=False)
    least, closed_form = found.sufficient, found.best("sufficient")
    assert least is not None
    assert closed_form is not None
    return {
        "database_id": database_id,
        "argmax_necessary": found.necessary,
        "argmax_rank": least,
        "argmax_closed_form": closed_form.value,
        "tau_rank": least_at_tau(QueryGraph.of(db, shared=False), least),
    }


_known: dict[int, dict[str, Database]] = {}


def _databases(count: int) -> dict[str, Database]:
    if count not in _known:
        pairs: dict[str, Any] = {} if count == 548 else {"pairs": 60}
        plan = paper_plan(0, PLAIN, databases=count, **pairs)
        _known[count] = {run.database_id: run.database for run in plan.runs}
    return _known[count]


def least_at_tau(graph: QueryGraph, start: int) -> int:
    """The least dimension found at which bounded factors give every fact softmax >= TAU."""
    failed, found, d = 0, None, max(start, _scores_needed(graph.shape[2]))
    while found is None:
        found, failed = (d, failed) if at_tau(graph, d) else (None, d)
        d = math.ceil(1.5 * d)
    while found - failed > 1:
        d = (found + failed) // 2
        if at_tau(graph, d):
            found = d
        else:
            failed = d
    return found


def _scores_needed(n_objects: int) -> int:
    """A dimension below which no score is large enough: d is above all others at -d at best."""
    return math.ceil(math.log(max(n_objects - 1, 1) * TAU / (1 - TAU)) / (2 * BOUND))


def at_tau(graph: QueryGraph, d: int, seed: int = 0) -> bool:
    """Train CP with factors of at most `BOUND`; return whether all facts reach softmax >= TAU."""
    form = FORMS["CP"]
    rows = vectors_of(graph, graph.queries, entities=False)
    o = torch.from_numpy(graph.facts[:, 2])
    generator = torch.Generator().manual_seed(seed)
    factors = {
        name: (
            torch.rand(*shape, generator=generator, dtype=torch.float64) * 2 - 1
        ).requires_grad_()
        for name, shape in form.shapes(rows.sizes, d).items()
    }
    optimiser = torch.optim.Adam(factors.values(), lr=RATE, betas=(0.9, 0.99), fused=True)
    wanted = math.log(TAU)
    for step in range(STEPS):
        for group in optimiser.param_groups:
            group["lr"] = RATE * min(1.0, 2 * (1 - step / STEPS) + 0.02)
        scores = form.query(factors, rows.subjects, rows.relations) @ factors["c"].T
        p = torch.log_softmax(scores, dim=1).gather(1, o[:, None])
        if bool((p >= wanted).all()):
            return True
        # beyond tau nothing is gained
        loss = torch.relu(wanted + 0.01 - p).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        with torch.no_grad():
            for x in factors.values():
                x.clamp_(-BOUND, BOUND)
    return False


def numbers(tables: Tables) -> dict[str, Any]:
    """The new ranks beside the old, and all measures as predictors."""
    databases = tables["databases"].merge(
        committed("measured_ranks", "effective"), on="database_id"
    )
    known = committed("figures", "plain").drop_duplicates("database_id")
    sizes = databases.merge(known, on="database_id")
    return {
        "databases": len(databases),
        "closed": int((databases.argmax_necessary == databases.argmax_rank).sum()),
        "ratios": {
            f"{a}_over_{b}": _quantiles(sizes[a] / sizes[b])
            for a, b in (
                ("argmax_rank", "database_rank_lower"), ("tau_rank", "database_rank_lower"),
                ("tau_rank", "argmax_rank"), ("argmax_rank", "argmax_closed_form"),
            )
        },
        "which_measures_predict_memorising": {
            kind: {
                str(tau): _prediction(committed("figures", kind), databases, tau)
                for tau in ("argmax", TAU)
            }
            for kind in KINDS
        },
    }  # fmt: skip


def _quantiles(ratio: pd.Series[float]) -> dict[str, float]:
    return {"least": ratio.min(), "median": ratio.median(), "most": ratio.max()}


def _prediction(table: pd.DataFrame, databases: pd.DataFrame, tau: Any) -> list[Any]:
    ready = add_size_columns(table.merge(databases, on="database_id"))
    done = ready[accuracy_column(tau)] == 1
    if ready["database_id"].nunique() < 10 or done.all() or not done.any():
        return []
    pairs = list(product((*SIZES, *RANKS), CAPACITIES))
    return compare_measures(ready, pairs, tau).assign(runs=len(ready)).to_dict(orient="records")


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Both ranks over the certified rank of each database."""
    known = committed("figures", "plain").drop_duplicates("database_id")
    table = tables["databases"].merge(known, on="database_id")
    figure = Figure(figsize=(WIDTH, 0.42 * WIDTH), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, name, colour, what in zip(
        axes, RANKS, COLOURS, ("argmax", f"softmax >= {TAU:g}, factors in [-1, 1]"), strict=False
    ):
        ax.plot(table.database_rank_lower, table[name], ".", ms=3, color=colour)
        most = int(table.database_rank_lower.max())
        ax.plot([0, most], [0, most], color="0.7", lw=0.8, label="equal")
        ax.set_xlabel("certified rank of the database, lower end")
        ax.set_title(what)
    axes[0].set_ylabel("least dimension of CP found")
    axes[0].legend(frameon=False)
    return {"ranks": figure}


if __name__ == "__main__":
    main("argmax_rank", run, numbers, plot)
