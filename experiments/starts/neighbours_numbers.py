"""Conclusions of `neighbours`: bits a parameter by starts, CP beside, and exponents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from capacity.evaluator import mean_interval
from experiments.common.conclusions import with_mean
from experiments.common.harness import Tables, committed
from experiments.starts.neighbours_associations import LOWER, associations_of

# of each count of bits, the line that its authors tell
LINES = {"averaged": 2.0, "clipped": 3.6}
HELD_AT = ("p95", "argmax")
ONE, BEST_OF = "one start", "best of several"
SERIES = ["kind", "trained_for", "layer_id", "is_frozen"]


def numbers(tables: Tables) -> dict[str, Any]:
    """Bits a parameter of layers and of CP, and the exponents of associations."""
    runs, cp = _with_read_parameters(tables), _of_cp(tables)
    short = runs["trained_for"].min()
    bits = {
        str(kind): {
            str(epochs): {
                "layers": {
                    str(name): _ways(part, cp, all_sizes=epochs == short)
                    for name, part in of.groupby("layer_id", sort=False)
                },
                "all layers": _ways(of, cp, all_sizes=epochs == short),
            }
            for epochs, of in of_kind.groupby("trained_for")
        }
        for kind, of_kind in runs.groupby("kind", sort=False)
    }
    associations = associations_of(tables["associations"])
    lower = associations["exponents"]["trained, scaled"]["best less one"]["d_h"]
    return {
        "bits": bits,
        "cp": _cp(cp),
        "lines": {
            count: "holds here" if _reached(bits, count, line) else "not seen here"
            for count, line in LINES.items()
        },
        "associations": associations,
        "d_h_squared_is_trainability": (
            "holds here" if lower["interval"][1] <= -LOWER else "not seen here"
        ),
    }


def _reached(bits: dict[str, Any], count: str, line: float) -> bool:
    """Tell if the interval of some layer, by the best of its starts, is at or above a line."""
    return any(
        way["most"][BEST_OF][count]["interval"][0] >= line
        for of_kind in bits.values()
        for of in of_kind.values()
        for ways in of["layers"].values()
        for way in ways.values()
    )


def _with_read_parameters(tables: Tables) -> pd.DataFrame:
    """Runs with the number of parameters that recall reads, as CP's are counted.

    They are those of the heads, one row of W_E for each subject and predicate, and one column of
    W_U for each object.
    """
    cp = tables["cp"].drop_duplicates(["kind", "size"])
    cp = cp.set_index(["kind", "size"])
    tokens = (cp["n_parameters"] / cp["argmax_rank"]).rename("tokens")
    runs = tables["bits"].join(tokens, on=["kind", "size"])
    d = runs["layer_id"].str.extract(r"d(\d+)-", expand=False).astype(int)
    return runs.assign(n_read_parameters=runs["n_all_parameters"] - d * runs["tokens"])


def _of_cp(tables: Tables) -> pd.DataFrame:
    """CP's bits a parameter of each database."""
    keys = ["kind", "size", "database"]
    content = tables["bits"].drop_duplicates(keys)[[*keys, "bits_content"]]
    cp = tables["cp"].merge(content, on=keys)
    return cp.assign(bits=cp["bits_content"] / cp["n_parameters"])


def _cp(cp: pd.DataFrame) -> dict[str, Any]:
    """CP's bits a parameter by size; and of databases of other pages."""
    ranks = committed("argmax_rank", "databases")
    figures = committed("figures", "best")
    known = ranks.merge(figures.drop_duplicates("database_id"), on="database_id")
    of = _evenly(known) / (known["argmax_rank"] * known[_ROLES].sum(axis=1))
    held = figures[figures["accuracy_p95"] == 1]
    by_layers = _evenly(held) / (held["n_parameters"] + held["n_embedding_parameters"])
    least = committed("dimension_least", "runs")
    kinships = least[(least["model"] == "CP") & (least["graph"] == "kinships")]
    ratio = kinships["bits"] / (
        kinships["sufficient"] * kinships[["subjects", "relations", "objects"]].sum(axis=1)
    )
    return {
        "sizes": {
            str(kind): [_cp_of_size(part) for _, part in of_kind.groupby("size")]
            for kind, of_kind in cp.groupby("kind", sort=False)
        },
        "paper": {
            "databases": len(of), "median": of.median(), "least": of.min(), "most": of.max(),
            "median_above_100_triples": of[known["n_triples"] > 100].median(),
            "layers_that_hold": {
                "runs": len(held), "median": by_layers.median(),
                "most": by_layers.max(), "one_in_a_hundred": by_layers.quantile(0.99),
            },
        },
        "kinships": {"least": ratio.min(), "most": ratio.max(), "seeds": len(ratio)},
    }  # fmt: skip


_ROLES = ["n_subjects", "n_predicates", "n_objects"]


def _cp_of_size(part: pd.DataFrame) -> dict[str, Any]:
    return {
        "size": int(part["size"].iloc[0]), "triples": part["n_triples"].mean(),
        "argmax_rank": part["argmax_rank"].mean(), "parameters": part["n_parameters"].mean(),
        "bits": with_mean(part["bits"], _shared(part, "database")),
    }  # fmt: skip


def _evenly(table: pd.DataFrame) -> pd.Series[float]:
    """Bits of the facts if each object of the database were as likely as any other."""
    return table["n_triples"] * np.log2(table["n_objects"])


def _ways(runs: pd.DataFrame, cp: pd.DataFrame, *, all_sizes: bool) -> dict[str, Any]:
    """The most bits a parameter, and those of the largest database held, trained and frozen."""
    found: dict[str, Any] = {}
    for frozen, part in runs.groupby("is_frozen"):
        way = found["frozen" if frozen else "trained"] = {
            "most": {
                name: {
                    **{count: _most(part, count, name) for count in LINES},
                    "as_cp_counts": _most(part, "averaged", name, per="n_read_parameters"),
                }
                for name in (ONE, BEST_OF)
            }
        }
        if all_sizes:
            way["held"] = {
                name: {at: _held(part, cp, at, name) for at in HELD_AT} for name in (ONE, BEST_OF)
            }
    return found


def curve(runs: pd.DataFrame, count: str, name: str, per: str = "n_all_parameters") -> pd.DataFrame:
    """Bits a parameter of each layer on each database, by one start or by the best."""
    each = runs.assign(bits=runs[f"bits_{count}"] / runs[per])
    by = each.groupby([*SERIES, "size", "n_triples", "database_id"], sort=False)["bits"]
    return (by.mean() if name == ONE else by.max()).reset_index()


def _most(
    runs: pd.DataFrame, count: str, name: str, per: str = "n_all_parameters"
) -> dict[str, Any]:
    """The largest mean over databases of all sizes, each layer at its own size."""
    each = curve(runs, count, name, per)
    means = each.groupby(["layer_id", "n_triples"], sort=False)["bits"].mean()
    best = means.groupby("layer_id").idxmax()
    kept = each[[key in set(best) for key in zip(each["layer_id"], each["n_triples"], strict=True)]]
    triples = {layer: int(triples) for layer, triples in best}
    told = next(iter(triples.values())) if len(triples) == 1 else triples
    return {"triples": told, **with_mean(kept["bits"], _shared(kept, "database_id"))}


def _shared(rows: pd.DataFrame, database: str) -> pd.DataFrame:
    """Name what rows share: databases, and layers where there are several."""
    layers = ["layer_id"] if "layer_id" in rows and rows["layer_id"].nunique() > 1 else []
    return rows[[database, *layers]].rename(columns={database: "database_id"})


def _held(runs: pd.DataFrame, cp: pd.DataFrame, at: str, name: str) -> dict[str, Any]:
    """Bits a parameter of the largest database held, of each layer and series of databases.

    A series has one database of each size. By one start it is the mean over starts, each with a
    largest database of its own; where none is held, it is 0.
    """
    held = runs[runs[f"accuracy_{at}"] == 1]
    each = ["layer_id", "database", *(["start"] if name == ONE else [])]
    largest = held.sort_values("n_triples").groupby(each).tail(1).drop_duplicates(each)
    largest = largest.merge(
        cp[["kind", "size", "database", "bits"]], on=["kind", "size", "database"], how="left"
    ).set_index(each)
    every = pd.MultiIndex.from_frame(runs[each].drop_duplicates())
    found = pd.DataFrame({
        "bits": (largest["bits_content"] / largest["n_all_parameters"]).reindex(every).fillna(0.0),
        "read": (largest["bits_content"] / largest["n_read_parameters"]).reindex(every).fillna(0.0),
        "triples": largest["n_triples"].reindex(every).fillna(0),
        "cp": largest["bits"].reindex(every),
        "at_the_end": largest["size"].reindex(every).eq(runs["size"].max()),
    }).groupby(["layer_id", "database"]).mean().reset_index()  # fmt: skip
    shared = _shared(found, "database")
    beside = found.dropna(subset="cp")
    return {
        "triples": found["triples"].mean(),
        "of_the_largest_size": found["at_the_end"].mean(),
        **_mean(found["bits"], shared),
        "as_cp_counts": _mean(found["read"], shared),
        "cp": with_mean(beside["cp"], _shared(beside, "database")),
    }


def _mean(bits: pd.Series[float], shared: pd.DataFrame) -> dict[str, Any]:
    """A mean with its interval; bits that are all 0 are no shares of runs."""
    return {"mean": bits.mean(), "interval": mean_interval(bits, shared), "n_runs": len(bits)}
