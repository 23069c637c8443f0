"""Measures of facts before any training, and how well they foretell what a layer completes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from capacity.evaluator import percentile_interval
from experiments.common.regressions import held_out_scores, resampled_coefficients

# what is added for each test fact, and what is known beside it
RANKS = ("rank added, upper ends", "rank added, at least", "rank added, at most")
RIVALS = (
    "Proposition 2.1 added", "description length added", "entropy of the objects", "triples",
    "share copied", "chance",
)  # fmt: skip
RESAMPLES = 200
# fewer databases say nothing of a regression
LEAST_DATABASES = 20
KEY = ["database_id", "held_out"]


def measures_of(splits: pd.DataFrame) -> dict[str, pd.Series[float]]:
    """What may foretell test facts; what is added is for each of them."""
    of, test = splits, splits["n_test"]
    return {
        RANKS[0]: (of["all_upper"] - of["train_upper"]) / test,
        RANKS[1]: (of["all_lower"] - of["train_upper"]).clip(lower=0) / test,
        RANKS[2]: (of["all_upper"] - of["train_lower"]) / test,
        RIVALS[0]: (of["all_bound"] - of["train_bound"]) / test,
        RIVALS[1]: (of["bits_all"] - of["bits_train"]) / test,
        RIVALS[2]: of["entropy_train"] / of["n_train"],
        RIVALS[3]: of["n_train"].astype(float),
        RIVALS[4]: of["copies"].astype(float),
        RIVALS[5]: of["chance"].astype(float),
    }


def mean_of(values: Any, part: pd.DataFrame) -> dict[str, Any]:
    """A mean over runs, and its bootstrap interval over databases.

    It is `capacity.evaluator.mean_interval` on sums of databases, which a conclusion of thousands
    of runs needs a thousand of.
    """
    table = pd.DataFrame({"value": np.asarray(values, dtype=np.float64),
                          "of": part["database_id"].to_numpy()})  # fmt: skip
    if not len(table):
        return {"mean": None, "interval": None, "n_runs": 0}
    groups = table.groupby("of")["value"].agg(["sum", "size"]).to_numpy(np.float64)
    n = len(groups)
    drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), 1000) @ groups
    return {
        "mean": table["value"].mean(), "interval": percentile_interval(drawn[:, 0] / drawn[:, 1]),
        "n_runs": len(table),
    }  # fmt: skip


def ranks_known(splits: pd.DataFrame) -> dict[str, Any]:
    """How often effective ranks, and what test facts add to them, are certified; mean ends."""
    closed = (splits["all_lower"] == splits["all_upper"]) & (
        splits["train_lower"] == splits["train_upper"]
    )
    return {
        "splits": len(splits), "both_known_exactly": closed.mean(),
        "certified_to_add_nothing": (splits["all_upper"] == splits["train_lower"]).mean(),
        "certified_to_add": (splits["all_lower"] > splits["train_upper"]).mean(),
        "train": [splits["train_lower"].mean(), splits["train_upper"].mean()],
        "train_and_test": [splits["all_lower"].mean(), splits["all_upper"].mean()],
    }  # fmt: skip


def certified(runs: pd.DataFrame) -> dict[str, Any]:
    """Test facts that are right, and their excess over chance, by what certificates say is added.

    Where the rank stays, its claim foretells completion; structures without copies are apart.
    """
    added = np.where(
        runs["all_upper"] == runs["train_lower"], "nothing",
        np.where(runs["all_lower"] > runs["train_upper"], "something", "not known"),
    )  # fmt: skip
    keys = [runs["block"], runs["structure"], runs["copies"], runs["kind"], added]
    rows: list[dict[str, Any]] = []
    for key, part in runs.groupby(keys):
        names = ("block", "structure", "copies", "kind", "added")
        share = part["test_right"] / part["n_test"]
        rows.append({
            **dict(zip(names, key, strict=True)),  # type: ignore[arg-type]
            "databases": int(part["database_id"].nunique()),
            "test": mean_of(share, part), "above_chance": mean_of(share - part["chance"], part),
            "mrr": mean_of(part["test_mrr"], part),
        })  # fmt: skip
    return {"rows": rows}


def completion(part: pd.DataFrame) -> dict[str, Any]:
    """Logistic regressions of the test facts that are right, a constant for each layer and share.

    Effects are of a standard deviation on log odds; gains are nats for each test fact, in databases
    of other folds than those of the fit, beside the constants alone.
    """
    share = part["test_right"] / part["n_test"]
    found: dict[str, Any] = {
        "runs": len(part), "test": mean_of(share, part),
        "test_p95": mean_of(part["test_right_p95"] / part["n_test"], part),
        "above_chance": mean_of(share - part["chance"], part),
    }  # fmt: skip
    if part["database_id"].nunique() < LEAST_DATABASES:
        return found
    part = part.reset_index(drop=True)
    of_layer = part["layer_id"] + part["held_out"].astype(str)
    constants = pd.get_dummies(of_layer, dtype=float).to_numpy()
    columns: dict[str, NDArray[np.float64]] = {}
    for name in (*RANKS, *RIVALS):
        # constants have the means of the shares
        values = part[name] - part.groupby("held_out")[name].transform("mean")
        # equal for all, as the rank is with own objects
        if values.std() > 1e-6 * (1 + part[name].abs().mean()):
            columns[name] = (values / values.std()).to_numpy(float)
    done, tried = part["test_right"].to_numpy(float), part["n_test"].to_numpy(float)
    databases = part["database_id"]
    base = held_out_scores(constants, done, tried, databases)

    def gain(names: list[str]) -> NDArray[np.float64]:
        design = np.column_stack([*(columns[name] for name in names), constants])
        return np.asarray(held_out_scores(design, done, tried, databases) - base) / tried

    rivals = [name for name in RIVALS if name in columns]
    ranks = [name for name in RANKS if name in columns]
    gains = {name: gain([name]) for name in columns}
    of_rivals, of_all = gain(rivals), gain([*rivals, *ranks])
    first = RANKS[0] if RANKS[0] in columns else None
    other = "description length added"
    return found | {
        "alone": {name: _effect(values, constants, done, tried, part)
                  for name, values in columns.items()},
        "gain_alone": {name: mean_of(values, part) for name, values in gains.items()},
        "gain_of_rivals": mean_of(of_rivals, part),
        "gain_of_rank_beside_rivals": mean_of(of_all - of_rivals, part) if ranks else None,
        "rank_less_description_length": mean_of(gains[first] - gains[other], part)
        if first and other in gains else None,
    }  # fmt: skip


def _effect(
    values: NDArray[np.float64],
    constants: NDArray[np.float64],
    done: NDArray[np.float64],
    tried: NDArray[np.float64],
    part: pd.DataFrame,
) -> dict[str, Any]:
    design = np.column_stack([values, constants])
    whole, drawn = resampled_coefficients(design, done, tried, part["database_id"], RESAMPLES)
    return {"value": whole[0], "interval": percentile_interval(drawn[:, 0])}
