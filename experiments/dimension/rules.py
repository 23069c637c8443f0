"""Rules that people choose a dimension by, and what became of them on these graphs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

# the dimension that a rule gives for a row of the table of `least`
Rule = Callable[[pd.DataFrame], "pd.Series[float]"]
# a name, its source, and the rule
RULES: dict[str, tuple[str, Rule]] = {
    "fourth root": ("N^(1/4), TensorFlow's guide", lambda t: t.entities**0.25),
    "logarithm": ("log2 N", lambda t: t.entities.map(math.log2)),
    "fast.ai": ("min(600, 1.6 N^0.56)", lambda t: (1.6 * t.entities**0.56).clip(upper=600)),
    "half": ("min(50, N / 2), fast.ai before", lambda t: (t.entities / 2).clip(upper=50)),
    "50": ("PyKEEN's usual default", lambda t: t.entities * 0 + 50.0),
    "200": ("ComplEx and ConvE as published", lambda t: t.entities * 0 + 200.0),
    "entities": ("a dimension for each entity", lambda t: t.entities * 1.0),
    "rank": ("the lower end of the certified CP rank", lambda t: t.rank_lower * 1.0),
    "effective rank": ("its lower end", lambda t: t.effective_rank_lower * 1.0),
    "2c + 1": ("Badreddine et al. 2025", lambda t: 2.0 * t.answers + 1),
    "curves": ("the best closed form here", lambda t: t.closed_form * 1.0),
    "counting": ("2 bits a parameter, for CP", lambda t: t.bits / (2 * t.parameters)),
}
# a rule tells the least dimension if it is within this factor of it
FACTOR = 2.0
# and the dimension that predicts best if its MRR is at least this share of the best
SHARE = 0.95


def dimensions_of(rule: str, table: pd.DataFrame) -> pd.Series[float]:
    """The dimension that a rule gives for each row, 1 at least."""
    return RULES[rule][1](table).round().clip(lower=1)


def fits(cp: pd.DataFrame) -> dict[str, Any]:
    """Each rule beside the least dimension of CP that was found, by kind of graph."""
    return {rule: _fits(cp, dimensions_of(rule, cp)) for rule in RULES}


def _fits(cp: pd.DataFrame, says: pd.Series[float]) -> dict[str, Any]:
    each = pd.DataFrame({
        "kind": cp.graph.map(kind_of), "graph": cp.graph,
        "ratio": says / cp.fits, "refuted": says < cp.necessary,
    })  # fmt: skip
    graphs = each.groupby(["kind", "graph"]).agg(
        ratio=("ratio", "median"), refuted=("refuted", "all")
    )
    # the factor itself is within
    within = graphs.ratio.between(1 / FACTOR, FACTOR)
    kinds = {
        str(kind): {
            "graphs": len(of), "least": of.ratio.min(), "median": of.ratio.median(),
            "most": of.ratio.max(), "within": int(within[of.index].sum()),
            "too_small_by_proof": int(of.refuted.sum()),
        }
        for kind, of in graphs.groupby("kind")
    }  # fmt: skip
    verdict = "holds here" if within.all() else "false (count)"
    return {"verdict": verdict, "within": int(within.sum()), "graphs": len(graphs), "kinds": kinds}


def kind_of(name: str) -> str:
    """Whether a graph is real, a shuffled one, or random."""
    if name.startswith("random"):
        return "random"
    return "shuffled" if name.endswith("shuffled") else "real"


def predicts(mrr: pd.DataFrame, cp: pd.DataFrame) -> dict[str, Any]:
    """Each rule by the MRR at the dimension of the grid that is nearest to it, on a scale of logs.

    Parameters
    ----------
    mrr : DataFrame
        The mean MRR of a graph, a model and a dimension: these columns and ``test``.
    cp : DataFrame
        The rows of CP of the table of `least`.
    """
    found: dict[str, Any] = {}
    for rule in RULES:
        shares = []
        for (graph, _), of in mrr.groupby(["graph", "model"]):
            rows = cp[cp.graph == graph]
            if rows.empty:
                continue
            says = float(dimensions_of(rule, rows).median())
            at = nearest(of.dimension.to_numpy(), says)
            shares.append(float(of.test[of.dimension == at].iloc[0] / of.test.max()))
        good = sum(share >= SHARE for share in shares)
        verdict = "holds here" if good == len(shares) else "false (count)"
        found[rule] = {"verdict": verdict, "within": good, "of": len(shares),
                       "least_share": min(shares, default=None)}  # fmt: skip
    return found


def nearest(grid: NDArray[np.int64], dimension: float) -> int:
    """The dimension of a grid that is nearest to another by their ratio."""
    return int(grid[np.abs(np.log(grid / dimension)).argmin()])
