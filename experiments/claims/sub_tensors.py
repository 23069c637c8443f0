"""How far ranks of random sub-tensors are from the rank of the whole.

    python -m experiments.claims.sub_tensors --run
    python -m experiments.claims.sub_tensors --plot

Wong (section 5.2) names sub-tensors of D as a way to larger databases. No estimator is asked for
here; the question is what the rank of a random part shows. Fixed before the run:

* databases whose rank is known, that is whose interval is closed at the effort `EFFORT`: of the
  paper's kind with up to `MOST` triples (`random_database`), without structure
  (`uniform_database`), and with predicates that copy one another (`structured_database`),
  `DATABASES` of each drawn;
* of each `DRAWS` random sub-tensors for each share of `SHARES`, in the `PARTS`: that share of the
  subjects, of the facts, or of subjects, predicates and objects alike. Parts without facts are
  omitted, and told;
* the *share of the rank* is rank(part) / rank(whole), and the *scaled rank* divides it by the share
  of the facts that are in the part. Both are intervals: ends of the part's certified interval;
* H5, "sub-tensors represent the whole": for random halves of the subjects one of the two rules, the
  rank of the part as it is or scaled, is within `WITHIN` of the rank of the whole. It *holds here*
  for a kind if by one rule it certainly is for a share of the parts whose interval over databases
  is above `OFTEN`. The same is told for the other parts.

The rank of a sub-tensor, of some subjects or of some tokens of each mode, is at most that of the
whole: a theorem, so that as a lower bound it needs no scaling. Some of the facts are no sub-tensor,
and can have a larger rank; that the theorem holds for them was stated before the run, and is false.
Databases whose rank isn't known are left out, so that those with bounds that agree are preferred. A
pilot on eight databases of each kind chose their sizes, so that some ranks are known in every kind.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from capacity import Database
from capacity.database import random_database, structured_database, uniform_database
from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from capacity.progress import bar
from capacity.rank import rank_interval
from experiments.common.conclusions import with_mean
from experiments.common.drawing import REFERENCE, estimates, headline
from experiments.common.harness import Tables, main, rows_of

EFFORT, MOST, DATABASES, DRAWS = "quick", 80, 40, 4
WITHIN, OFTEN = 0.1, 0.9
SHARES = (0.25, 0.5, 0.75)
PARTS = ("subjects", "facts", "all modes")
# rank(part) / rank(whole), and that over the share of the facts
RULES = ("share", "scaled")
FIRST_SEED = 6000


def of_the_papers_kind(seed: int) -> Database:
    """A database of the paper's kind."""
    return random_database(FIRST_SEED + seed, triples=(20, MOST))


def without_structure(seed: int) -> Database:
    """A database whose objects are drawn evenly."""
    return uniform_database(FIRST_SEED + seed, subjects=40, predicates=4, objects=5, triples=120)


def with_copies(seed: int) -> Database:
    """A database half of whose cells copy the predicate before them."""
    return structured_database(FIRST_SEED + seed, "same", 0.5, subjects=40, predicates=4, objects=5)


KINDS: dict[str, Callable[[int], Database]] = {
    "paper's kind": of_the_papers_kind,
    "without structure": without_structure,
    "with copies": with_copies,
}


def run(smoke: bool) -> Tables:
    """A row for each part of each database."""
    tasks = list(product(KINDS, range(4 if smoke else DATABASES)))
    with bar() as tell:
        found = rows_of("sub_tensors", parts_of, tasks, tell, in_process=True)
    return {"parts": pd.DataFrame([row for each in found for row in each["rows"]])}


def parts_of(task: tuple[str, int]) -> dict[str, Any]:
    """A row for each part of a database of known rank; one row if its rank isn't known."""
    kind, seed = task
    db = KINDS[kind](seed)
    whole = rank_interval(db, effort=EFFORT)
    base = {
        "kind": kind, "database_id": f"{kind}-{seed}", "n_triples": db.n_triples,
        "known": whole.lower == whole.upper, "rank": whole.lower,
    }  # fmt: skip
    if whole.lower < whole.upper:
        return {"rows": [base]}
    rng = np.random.default_rng([FIRST_SEED, seed])
    rows: list[dict[str, Any]] = []
    for part, share, _ in product(PARTS, SHARES, range(DRAWS)):
        mask = mask_of(db, part, share, rng)
        row = {**base, "part": part, "share": share, "facts": int(mask.sum())}
        if mask.any():
            found = rank_interval(db.subset(mask), effort=EFFORT)
            row |= {"lower": found.lower, "upper": found.upper}
        rows.append(row)
    return {"rows": rows}


def mask_of(db: Database, part: str, share: float, rng: np.random.Generator) -> Any:
    """The facts of a random part."""
    if part == "facts":
        mask = np.zeros(db.n_facts, bool)
        mask[rng.choice(db.n_facts, max(1, round(share * db.n_facts)), replace=False)] = True
        return mask
    mask = np.ones(db.n_facts, bool)
    for mode, side in enumerate(db.shape if part == "all modes" else db.shape[:1]):
        kept = rng.choice(side, max(1, round(share * side)), replace=False)
        mask &= np.isin(db.tuples[:, mode], kept)
    return mask


def numbers(tables: Tables) -> dict[str, Any]:
    """Shares of the rank and scaled ranks, by kind, part and share."""
    table = tables["parts"]
    parts = table[table["known"] & table["lower"].notna()].copy()
    of_facts = parts["facts"] / parts["n_triples"]
    for end in ("lower", "upper"):
        parts[f"share_{end}"] = parts[end] / parts["rank"]
        parts[f"scaled_{end}"] = parts[f"share_{end}"] / of_facts
    low, high = 1 / (1 + WITHIN), 1 + WITHIN
    for rule in RULES:
        lower, upper = parts[f"{rule}_lower"], parts[f"{rule}_upper"]
        parts[f"{rule}_within"] = (lower >= low) & (upper <= high)
        parts[f"{rule}_maybe_within"] = (upper >= low) & (lower <= high)
    cells = {
        kind: {
            part: {str(share): _cell(each) for share, each in mine.groupby("share")}
            for part, mine in of.groupby("part", sort=False)
        }
        for kind, of in parts.groupby("kind", sort=False)
    }
    databases = table.drop_duplicates("database_id").groupby("kind", sort=False)["known"]
    return {
        "cells": cells,
        "databases": {kind: int(known.sum()) for kind, known in databases},
        "drawn": {kind: len(known) for kind, known in databases},
        "parts": len(parts),
        "closed": float((parts["lower"] == parts["upper"]).mean()),
        "empty": int((table["known"] & table["lower"].isna()).sum()),
        "hypotheses": {
            kind: "holds here"
            if any(half[rule]["within"]["interval"][0] > OFTEN for rule in RULES)
            else "not seen here"
            for kind, half in ((kind, of["subjects"]["0.5"]) for kind, of in cells.items())
        },
    }


def _cell(of: pd.DataFrame) -> dict[str, Any]:
    """By both rules the means over the parts of one kind, and how far single ones are."""
    shared = of[["database_id"]]
    return {
        rule: {
            **with_mean(of[f"{rule}_lower"], shared),
            "upper": with_mean(of[f"{rule}_upper"], shared),
            "nine_in_ten": [
                of[f"{rule}_lower"].quantile(0.05),
                of[f"{rule}_upper"].quantile(0.95),
            ],
            "within": with_mean(of[f"{rule}_within"], shared),
            "maybe_within": with_mean(of[f"{rule}_maybe_within"], shared),
        }
        for rule in RULES
    }


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Scaled ranks by the share of the part, for each way to take parts."""
    figure = Figure(figsize=(WIDTH, 3.2))
    panels = figure.subplots(1, len(PARTS), sharey=True)
    for axes, part in zip(panels, PARTS, strict=True):
        for (kind, of), colour, marker in zip(
            found["cells"].items(), COLOURS, MARKERS, strict=False
        ):
            each = [of[part][str(share)]["scaled"] for share in SHARES]
            estimates(axes, SHARES, each, colour=colour, marker=marker, label=kind, line="-")
        axes.axhline(1, color=REFERENCE, linewidth=0.8, label="as the whole")
        axes.set(xlabel="share in the part", title=f"of {part}")
    panels[0].set_ylabel("rank of the part over its facts,\nover that of the whole")
    panels[0].legend()
    half = found["cells"]["paper's kind"]["subjects"]["0.5"]
    headline(
        figure,
        "Parts with half of the subjects of a database of the paper's kind have "
        f"{half['share']['mean']:.2f} of its rank,\nand {half['scaled']['mean']:.2f} times its rank"
        " per fact",
    )
    return {"scaled": figure}


if __name__ == "__main__":
    main("sub_tensors", run, numbers, plot)
