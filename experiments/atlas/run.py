"""The atlas: the certified rank of every small database of facts, up to renaming.

    python -m experiments.atlas.run --run     (six minutes on two cores)
    python -m experiments.atlas.run --plot

All functional databases of up to 3 subjects, predicates and objects, partial ones included, one of
each class up to renaming; and all 0/1 tensors of 2 x 2 x 2 x 2, up to flips of indices and
permutations of modes. Each has its certified rank, with the certificates of both ends; a database
its effective rank, too, and its argmax rank: the least dimension of CP whose largest score in each
observed pair is the fact (`capacity.dimension`, subjects and objects apart). Every one is searched
by `quick`, and what is open after that by `standard` and, but for argmax ranks, `thorough`. It
goes on where it was stopped.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from capacity import dimension
from capacity.database import Database
from capacity.embedding import dimension_from_dict, dimension_to_dict, verify_dimension
from capacity.plots.theme import COLOURS, WIDTH
from capacity.progress import bar
from capacity.rank import (
    Certificate,
    Effort,
    RankAnalysis,
    RankInterval,
    concise_core,
    paper_bound,
    rank_interval,
    verify,
)
from experiments.atlas.classes import binary_tensors, database_of, small_databases, tensor_of
from experiments.common.harness import Tables, main, rows_of

MOST, ORDER = 3, 4
# every so many of them, for the tests
SMOKE = 97
EFFORTS: tuple[Effort, ...] = ("quick", "standard", "thorough")
QUANTITIES = ("rank", "effective_rank")


def run(smoke: bool) -> Tables:
    """Both tables."""
    every = SMOKE if smoke else 1
    codes, numbers = list(small_databases(MOST))[::every], binary_tensors(ORDER)[::every]
    with bar() as tell:
        databases = rows_of("atlas-databases", of_database, codes, tell, in_process=smoke)
        tensors = rows_of("atlas-tensors", of_tensor, numbers, tell, in_process=smoke)
    return {"databases": pd.DataFrame(databases), "tensors": pd.DataFrame(tensors)}


def of_database(code: str) -> dict[str, Any]:
    """The row of a database: its sizes, ranks, and what proves them."""
    db = database_of(code)
    row: dict[str, Any] = {}
    for effort in EFFORTS:
        analysis = RankAnalysis(db, effort=effort)
        row = {"effort": effort}
        for quantity in QUANTITIES:
            row |= _ends(quantity, getattr(analysis, quantity))
        if all(getattr(analysis, quantity).closed for quantity in QUANTITIES):
            break
    row |= _argmax_rank(db)
    core = concise_core(db.tensor()).tensor.shape
    sizes = zip(("subjects", "predicates", "objects"), db.shape, strict=True)
    return {
        "code": code,
        **dict(sizes),
        "facts": db.n_triples,
        "complete": "0" not in code,
        "paper": paper_bound(db),
        **{f"multilinear_{mode}": n for mode, n in enumerate(core)},
        **row,
    }


def _argmax_rank(db: Database) -> dict[str, Any]:
    row: dict[str, Any] = {}
    # up to 12 starts of 4,000 steps for each dimension
    for effort in EFFORTS[:2]:
        found = dimension(db, "CP", shared=False, effort=effort)
        lower, upper = found.best("necessary"), found.best("sufficient")
        row = {
            "argmax_rank_lower": found.necessary,
            "argmax_rank_lower_by": lower and lower.words,
            "argmax_rank_upper": found.sufficient,
            "argmax_rank_upper_by": "a witness" if found.witness else upper and upper.words,
            "argmax_rank_certificate": json.dumps(dimension_to_dict(found), separators=(",", ":")),
        }
        if found.necessary == found.sufficient:
            break
    return row


def of_tensor(number: int) -> dict[str, Any]:
    """The row of a tensor of order four."""
    tensor = tensor_of(number, ORDER)
    row: dict[str, Any] = {}
    for effort in EFFORTS:
        interval = rank_interval(tensor, effort=effort)
        row = {"effort": effort, **_ends("rank", interval)}
        if interval.closed:
            break
    core = concise_core(tensor).tensor.shape
    return {
        "number": number,
        "entries": tensor.n_entries,
        **{f"multilinear_{mode}": n for mode, n in enumerate(core)},
        **row,
    }


def _ends(quantity: str, interval: RankInterval) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for side, end in zip(("lower", "upper"), interval.certificates, strict=True):
        row |= {
            f"{quantity}_{side}": end.value,
            f"{quantity}_{side}_by": end.by,
            f"{quantity}_{side}_certificate": json.dumps(end.to_dict(), separators=(",", ":")),
        }
    return row


def numbers(tables: Tables) -> dict[str, Any]:
    """Counts: what is closed, the ranks, and where bounds are sharp."""
    db, tensors = tables["databases"], tables["tensors"]
    closed = db[(db.rank_lower == db.rank_upper)
                & (db.effective_rank_lower == db.effective_rank_upper)]  # fmt: skip
    above = Counter((closed.effective_rank_upper - closed.objects).tolist())
    multilinear = closed[[f"multilinear_{mode}" for mode in range(3)]].max(axis=1)
    return {
        "databases": {
            **_counts(db, "rank", "code"),
            "effective_rank": _counts(db, "effective_rank", "code"),
            "argmax_rank": _counts(db, "argmax_rank", "code"),
            "complete": int(db.complete.sum()),
            "both_closed": len(closed),
            "effective_below_rank": int((closed.effective_rank_upper < closed.rank_upper).sum()),
            "effective_rank_above_objects": {str(k): n for k, n in sorted(above.items())},
            "rank_above_multilinear": int((closed.rank_upper > multilinear).sum()),
            "rank_below_paper_bound": int((closed.rank_upper < closed.paper).sum()),
            "largest_gap_to_paper_bound": int((closed.paper - closed.rank_upper).max()),
            "largest_rank": {
                f"{k}x{q}x{v}": int(of.rank_upper.max())
                for (k, q, v), of in closed.groupby(["subjects", "predicates", "objects"])
            },
        },
        "tensors": _counts(tensors, "rank", "number"),
    }


def _counts(table: pd.DataFrame, quantity: str, name: str) -> dict[str, Any]:
    low, high = table[f"{quantity}_lower"], table[f"{quantity}_upper"]
    is_open = low < high
    return {
        "classes": len(table),
        "closed": int((~is_open).sum()),
        "open": {
            str(of): [int(a), int(b)]
            for of, a, b in zip(table[name][is_open], low[is_open], high[is_open], strict=True)
        },
        "of_rank": {str(r): n for r, n in sorted(Counter(high[~is_open].tolist()).items())},
        "lower_by": dict(Counter(table[f"{quantity}_lower_by"]).most_common()),
        "upper_by": dict(Counter(table[f"{quantity}_upper_by"]).most_common()),
    }


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """How many classes have which rank, by their number of facts."""
    db = tables["databases"]
    figure = Figure(figsize=(WIDTH, 0.42 * WIDTH), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, quantity in zip(axes, QUANTITIES, strict=True):
        closed = db[db[f"{quantity}_lower"] == db[f"{quantity}_upper"]]
        counts = closed.groupby(["facts", f"{quantity}_upper"]).size().unstack(fill_value=0)
        bottom = pd.Series(0, index=counts.index)
        for number, rank in enumerate(counts):
            colour = COLOURS[number % len(COLOURS)]
            ax.bar(counts.index, counts[rank], bottom=bottom, color=colour, label=str(rank))
            bottom += counts[rank]
        ax.set_xlabel("facts")
        ax.set_title(quantity.replace("_", " "))
        ax.legend(title="rank", frameon=False)
    axes[0].set_ylabel("classes of databases")
    return {"ranks": figure}


def check_argmax(row: dict[str, Any], db: Database) -> bool:
    """Verify the bounds of the argmax rank of a row, and that they are those of its columns."""
    found = dimension_from_dict(json.loads(row["argmax_rank_certificate"]))
    # the ranks that it rests on have columns of their own
    ends = [("rank", "lower"), ("rank", "upper"), ("effective_rank", "upper")]
    ranks = tuple(_certificate(row, *end) for end in ends)
    argmax = row["argmax_rank_lower"], row["argmax_rank_upper"]
    is_it = (found.model, found.task, found.shared) == ("CP", "ranking", False)
    return (
        is_it
        and (found.necessary, found.sufficient) == argmax
        and verify_dimension(replace(found, ranks=ranks), db).proved
    )


def check(row: dict[str, Any], of: Any, quantity: str = "rank") -> bool:
    """Verify both certificates of a row."""
    return all(bool(verify(_certificate(row, quantity, side), of)) for side in ("lower", "upper"))


def _certificate(row: dict[str, Any], quantity: str, side: str) -> Certificate:
    return Certificate.from_dict(json.loads(row[f"{quantity}_{side}_certificate"]))


if __name__ == "__main__":
    main("atlas", run, numbers, plot)
