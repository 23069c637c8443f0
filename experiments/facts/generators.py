"""Triples over the bound of Proposition 2.1, by the generator of random databases.

    python -m experiments.facts.generators --run     (a minute on one core)
    python -m experiments.facts.generators --plot

Figure 2a of Wong 2025 has 1.8 triples for each unit of the bound min(sum |V_k|, sum |V_q|), of 548
databases "with at most 200 triples", which the text describes no further. What it allows is any
distribution of functional databases. For each subject and each predicate alone the bound counts an
object once, so that the ratio is one if no object repeats within a predicate (or none within a
subject), and it grows with how often objects repeat in both. Fixed before the run: one table of
2 to 50 subjects and 1 to 15 predicates (uniform, drawn again above 200 triples), each pair with a
fact with the probability of `FILLED`; the object of each fact from a pool of `POOLS` tokens, of its
predicate's own or of the whole database's, uniformly or by Zipf's law (exponent 1); `COUNT`
databases for each of these generators.

* H: triples are 1.8 times the bound, slopes within `WITHIN`, under most of the generators.

*Holds here* if that is so for more than half of them, and *not seen here* otherwise.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from capacity import Database
from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from capacity.rank import paper_bound
from experiments.common.drawing import REFERENCE, estimates, headline
from experiments.common.harness import Tables, main
from experiments.facts.figures import slope

COUNT, SUBJECTS, PREDICATES, MOST = 548, 50, 15, 200
FILLED, POOLS = (1.0, 0.5), (3, 10, 30, 100)
OWN, WEIGHTS = ("own", "shared"), ("uniform", "Zipf")
PAPERS, WITHIN = 1.8, 0.1


def run(smoke: bool) -> Tables:
    """A row for each database of each generator."""
    rows = [
        {"filled": filled, "pool": pool, "objects": objects, "weights": weights,
         "n_triples": db.n_triples, "database_rank_bound": paper_bound(db)}
        for number, (filled, pool, objects, weights) in enumerate(
            product(FILLED, POOLS, OWN, WEIGHTS)
        )
        for i in range(20 if smoke else COUNT)
        for rng in [np.random.default_rng([19 if smoke else 118, number, i])]
        for db in [drawn(rng, filled, pool, objects, weights)]
    ]  # fmt: skip
    return {"databases": pd.DataFrame(rows)}


def drawn(
    rng: np.random.Generator, filled: float, pool: int, objects: str, weights: str
) -> Database:
    """A functional database of one table with 1 to `MOST` triples."""
    while True:
        subjects, predicates = rng.integers(2, SUBJECTS + 1), rng.integers(1, PREDICATES + 1)
        cells = np.argwhere(rng.random((subjects, predicates)) < filled)
        if 0 < len(cells) <= MOST:
            break
    shares = 1 / np.arange(1, pool + 1) if weights == "Zipf" else np.ones(pool)
    chosen = rng.choice(pool, len(cells), p=shares / shares.sum())
    of = [f"{q}" if objects == "own" else "" for q in cells[:, 1]]
    return Database.from_triples(
        (f"s{k}", f"p{q}", f"o{name}.{v}")
        for (k, q), name, v in zip(cells.tolist(), of, chosen.tolist(), strict=True)
    )


def numbers(tables: Tables) -> dict[str, Any]:
    """The slope of each generator, and the verdict."""
    by = tables["databases"].groupby(["filled", "pool", "objects", "weights"], sort=False)
    slopes = [
        {"filled": key[0], "pool": key[1], "objects": key[2], "weights": key[3], **slope(part)}
        for key, part in by
    ]
    values = [one["slope"] for one in slopes]
    within = sum(abs(value - PAPERS) <= WITHIN for value in values)
    return {
        "generators": slopes,
        "count": len(slopes),
        "least": min(values),
        "most": max(values),
        "median": float(np.median(values)),
        "within": within,
        "verdict": "holds here" if 2 * within > len(slopes) else "not seen here",
    }


def plot(_tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Slopes by the size of the pool, of each kind of generator."""
    figure = Figure(figsize=(WIDTH, 3.4))
    panels = figure.subplots(1, len(FILLED), sharey=True)
    for axes, filled in zip(panels, FILLED, strict=True):
        for number, kind in enumerate(product(OWN, WEIGHTS)):
            of = [
                one for one in found["generators"]
                if (one["filled"], one["objects"], one["weights"]) == (filled, *kind)
            ]  # fmt: skip
            estimates(
                axes, [one["pool"] for one in of], of, colour=COLOURS[number],
                marker=MARKERS[number], line="-", label=f"{kind[0]} pool, {kind[1]}",
            )  # fmt: skip
        axes.axhline(PAPERS, color=REFERENCE, linewidth=0.8, linestyle=":", label="Figure 2a")
        axes.set(
            xscale="log", xlabel="tokens of the pool", title=f"{100 * filled:.0f} % of the pairs"
        )
    panels[0].set_ylabel("triples for each unit of the bound")
    panels[1].legend()
    headline(
        figure,
        f"The ratio of Figure 2a is a property of the generator: of {found['count']} generators "
        f"{found['within']}\nhave {PAPERS} within {WITHIN}, and the others {found['least']:.1f} to "
        f"{found['most']:.1f}",
    )
    return {"slopes": figure}


if __name__ == "__main__":
    main("generators", run, numbers, plot)
