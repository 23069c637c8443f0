"""Conclusions from the tables of `experiments.effective_attention.run`.

Intervals of means over a model's layers are over sentences and layers, drawn with replacement
independently; heads are averaged, and all of them are there. Those of one layer are over sentences,
or, where a table has heads, over sentences and heads. Families of comparisons have simultaneous
intervals, which say how many comparisons there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from capacity.evaluator import cluster_bootstrap, simultaneous_intervals
from capacity.evaluator.laws.bootstrap import percentile_interval
from experiments.common.harness import Tables
from experiments.common.models import CLS, SEP
from experiments.common.texts import KINDS
from experiments.effective_attention.measures import ATTENTIONS, SHAPES
from experiments.effective_attention.plots import TEXTS

RESAMPLES = 1000
# in the conclusions' keys; texts have those of `TEXTS`
KEYS = {SEP: "sep", CLS: "cls"}
COUNTS = ("weight", "share")
COMPARED = [shape + of for of in ("", "_of_squares") for shape in ("vertical", "diagonal", "block")]
Cells = NDArray[np.float64]


def numbers(tables: Tables) -> dict[str, Any]:
    """The paper's figures and tables as numbers, with intervals."""
    heads, padding = tables["shares-by-head"], tables["padding"]
    kinds = {
        slug: {
            **_kinds(_of(tables["shares-by-sentence"], name)),
            **{
                value: _by_kind(_of(tables["leverage"], name), value)
                for value in ("leverage", "size")
            },
            "heads_with_half_on": {
                KEYS[kind]: _heads_with_half(_of(heads[heads["kind"] == kind], name))
                for kind in (CLS, SEP)
            },
        }
        for name, slug in TEXTS.items()
    }
    return {
        "settings": _settings(tables),
        "figure_2": _of_example(tables["example"]),
        "figures_5_and_6": kinds,
        "sep_left_less_cls_left": _delimiters(tables["shares-by-sentence"]),
        "figure_1": {
            slug: _largest(_of(tables["final-by-sentence"], name)) for name, slug in TEXTS.items()
        },
        "table_2": _shapes(tables["shapes"]),
        "figure_3": _finetuning(tables["cosine"]),
        "table_3": {
            TEXTS[str(name)]: _speed(part) for name, part in tables["times"].groupby("texts")
        },
        "with_padding": {
            what: _mean(_cells(padding, what))
            for what in padding.columns.drop(["sentence", "layer"])
        },
    }


def _of(table: pd.DataFrame, name: str) -> pd.DataFrame:
    return table[table["texts"] == name]


def _key(kind: str) -> str:
    return KEYS.get(kind, kind)


def _settings(tables: Tables) -> dict[str, Any]:
    heads = tables["shares-by-head"]
    return {
        "sentences": int(tables["shares-by-sentence"]["sentence"].nunique()),
        "padded_sentences": int(tables["padding"]["sentence"].nunique()),
        "timed_turns": int(tables["times"]["repeat"].nunique()),
        **{
            slug: {what: int(_of(heads, name)[column].nunique())
                   for what, column in (("layers", "layer"), ("heads_a_layer", "head"))}
            for name, slug in TEXTS.items()
        },
    }  # fmt: skip


def _of_example(table: pd.DataFrame) -> dict[str, Any]:
    """Mean weight on delimiters in rows of other tokens, and the tokens with the most weight."""
    tokens = table.loc[table["row"] == 0, "token"].to_numpy(str)
    delimiter = np.isin(tokens, [CLS, SEP])
    rows = table[~delimiter[table["row"]]]
    received = rows.groupby("column")[list(ATTENTIONS)].mean()
    return {
        **{name: int(table[name].iloc[0]) for name in ("layer", "head")},
        "tokens": len(tokens),
        **{KEYS[kind]: received[tokens == kind].sum().to_dict() for kind in (CLS, SEP)},
        "most": {
            attention: [[tokens[place], weight] for place, weight in
                        received[attention].nlargest(8).items()]
            for attention in ATTENTIONS
        },
    }  # fmt: skip


@cache
def _weights(n: int, m: int) -> Cells:
    """Draws of how much each of n sentences counts in each of m layers, or heads."""
    grid = pd.DataFrame({"sentence": np.repeat(range(n), m), "other": np.tile(range(m), n)})
    W = np.stack(list(cluster_bootstrap(grid, RESAMPLES)))
    return W / W.sum(axis=1, keepdims=True)


def _cells(table: pd.DataFrame, value: str, columns: str = "layer") -> Cells:
    """A row a sentence; a sentence that lacks a kind of token is left out."""
    wide = table.pivot_table(index="sentence", columns=columns, values=value)
    return wide.dropna().to_numpy(np.float64)


def _draws(cells: Cells) -> Cells:
    return _weights(*cells.shape) @ cells.ravel()


def _mean(cells: Cells) -> dict[str, Any]:
    return {"mean": cells.mean(), "interval": percentile_interval(_draws(cells))}


def _ratio(above: Cells, below: Cells) -> dict[str, Any]:
    return {
        "value": above.mean() / below.mean(),
        "interval": percentile_interval(_draws(above) / _draws(below)),
    }


def _band(by_layer: Iterable[Cells]) -> dict[str, list[float]]:
    """Means of layers, and the ends of their intervals."""
    of = [_mean(cells) for cells in by_layer]
    low, high = zip(*(one["interval"] for one in of), strict=True)
    return {"mean": [one["mean"] for one in of], "low": list(low), "high": list(high)}


def _by_kind(table: pd.DataFrame, value: str) -> dict[str, Any]:
    return {
        _key(str(kind)): _mean(_cells(part, value))
        for kind, part in table.groupby("kind", sort=False)
    }


def _cells_of(table: pd.DataFrame, value: str) -> dict[tuple[str, str], Cells]:
    """The cells of each attention and kind."""
    parts = table.groupby(["attention", "kind"], sort=False)
    return {(str(a), str(k)): _cells(part, value) for (a, k), part in parts}  # type: ignore[misc]


def _kinds(table: pd.DataFrame) -> dict[str, Any]:
    """Weights and shares by kinds of tokens, and what projection leaves of them."""
    found: dict[str, Any] = {}
    for value in COUNTS:
        cells = _cells_of(table, value)
        found[value] = {
            attention: {
                _key(kind): {
                    **_mean(cells[attention, kind]),
                    "by_layer": _band(one[:, None] for one in cells[attention, kind].T),
                }
                for kind in KINDS
            }
            for attention in ATTENTIONS
        }
        found[f"{value}_left"] = {
            mode: {_key(kind): _ratio(cells[mode, kind], cells["standard", kind]) for kind in KINDS}
            for mode in ("plain", "simplex")
        }
    return found


def _delimiters(table: pd.DataFrame) -> dict[str, Any]:
    """Compare what plain attention leaves of [SEP] and of [CLS], as one family."""
    names, estimates, draws = [], [], []
    for name, slug in TEXTS.items():
        for value in COUNTS:
            cells = _cells_of(_of(table, name), value)
            drawn = {k: _draws(x) for k, x in cells.items()}
            names.append((slug, value))
            left, left_drawn = (
                [at["plain", kind] / at["standard", kind] for kind in (SEP, CLS)]
                for at in ({k: x.mean() for k, x in cells.items()}, drawn)
            )
            estimates.append(left[0] - left[1])
            draws.append(left_drawn[0] - left_drawn[1])
    intervals = simultaneous_intervals(estimates, np.stack(draws, axis=1))
    found: dict[str, Any] = {"comparisons": len(names)}
    for (slug, value), estimate, interval in zip(names, estimates, intervals, strict=True):
        found.setdefault(slug, {})[value] = {"value": estimate, "interval": interval}
    return found


def _largest(table: pd.DataFrame) -> dict[str, Any]:
    """The largest weight on each kind in the row of [CLS], and the place of [SEP]'s among them."""
    of = {
        str(attention): {_key(str(kind)): _mean(_cells(part, "largest"))
                         for kind, part in rows.groupby("kind", sort=False)}
        for attention, rows in table.groupby("attention", sort=False)
    }  # fmt: skip
    means = {kind: one["mean"] for kind, one in of["standard"].items()}
    return {**of, "place_of_sep": 1 + sum(mean > means["sep"] for mean in means.values())}


def _heads_with_half(table: pd.DataFrame) -> dict[str, Any]:
    """Number of heads that give a kind more than half of their weight."""
    half = {str(k): int((of["weight"] > 0.5).sum()) for k, of in table.groupby("attention")}
    return {"heads": len(table) // len(ATTENTIONS), **half}


def _shapes(table: pd.DataFrame) -> dict[str, Any]:
    """Shapes of patterns; how much the paper's three change is one family."""
    cells = {
        (slug, shape, attention): _cells(
            _of(table[table["attention"] == attention], name), shape
        )
        for name, slug in TEXTS.items() for shape in SHAPES for attention in ATTENTIONS
    }  # fmt: skip
    changes = {
        (slug, shape): cells[slug, shape, "plain"] - cells[slug, shape, "standard"]
        for slug in TEXTS.values() for shape in COMPARED
    }  # fmt: skip
    draws = np.stack([_draws(change) for change in changes.values()], axis=1)
    intervals = simultaneous_intervals([x.mean() for x in changes.values()], draws)
    found: dict[str, Any] = {"comparisons": len(changes)}
    for slug in TEXTS.values():
        found[slug] = {
            shape: {attention: _mean(cells[slug, shape, attention]) for attention in ATTENTIONS}
            for shape in SHAPES
        }
    for ((slug, shape), change), interval in zip(changes.items(), intervals, strict=True):
        found[slug][shape]["change"] = {"mean": change.mean(), "interval": interval}
    return found


def _finetuning(table: pd.DataFrame) -> dict[str, Any]:
    """Layers by cosine, and whether effective attention puts them in the same order."""
    layers = sorted(table["layer"].unique())
    cells = {
        str(attention): np.stack(
            [_cells(part[part["layer"] == layer], "cosine", "head") for layer in layers]
        )
        for attention, part in table.groupby("attention", sort=False)
    }
    means = {k: x.mean(axis=(1, 2)) for k, x in cells.items()}
    drawn = {k: np.stack([_draws(of) for of in x], axis=1) for k, x in cells.items()}
    over_sentences = {
        k: np.stack([_draws(of.mean(axis=1, keepdims=True)) for of in x], axis=1)
        for k, x in cells.items()
    }
    difference = means["plain"] - means["standard"]
    largest = int(np.abs(difference).argmax())
    return {
        "n_sentences": cells["standard"].shape[1],
        "n_heads": cells["standard"].shape[2],
        "cosine": {k: _band(x) for k, x in cells.items()},
        "draws_in_which_the_last_two_change_most": {
            k: (x[:, :-2].min(axis=1) > x[:, -2:].max(axis=1)).mean() for k, x in drawn.items()
        },
        "layers_by_change": {k: [int(layers[i]) for i in x.argsort()] for k, x in means.items()},
        "plain_less_standard": {
            "comparisons": len(layers),
            "mean": list(difference),
            "largest": {
                "layer": int(layers[largest]),
                **{k: means[k][largest] for k in ("standard", "plain")},
            },
            "over_sentences": _lower(difference, over_sentences, layers),
            "over_sentences_and_heads": _lower(difference, drawn, layers),
        },
        "rank_correlation_with_standard": {
            k: {
                "value": float(_rank_correlation(means["standard"], means[k])),
                "interval": percentile_interval(_rank_correlation(drawn["standard"], drawn[k])),
            }
            for k in ("plain", "simplex")
        },
    }


def _lower(difference: Cells, drawn: dict[str, Cells], layers: list[int]) -> dict[str, Any]:
    """Layers whose cosine is certainly lower, or higher, by plain than by standard attention."""
    ends = simultaneous_intervals(difference, drawn["plain"] - drawn["standard"])
    return {
        "intervals": ends,
        "lower": [int(n) for n, (_, high) in zip(layers, ends, strict=True) if high < 0],
        "higher": [int(n) for n, (low, _) in zip(layers, ends, strict=True) if low > 0],
    }


def _rank_correlation(first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
    """Spearman's, over the last axis, of numbers that differ."""
    ranks = [np.asarray(x).argsort(-1).argsort(-1) for x in (first, second)]
    n = ranks[0].shape[-1]
    return 1 - 6 * np.square(ranks[0] - ranks[1]).sum(-1) / (n * (n * n - 1))


def _speed(table: pd.DataFrame) -> dict[str, Any]:
    """Medians, and the median of ratios within a turn."""
    wide = table.pivot(index="repeat", columns="way", values="seconds")
    conditions = ("n_sentences", "n_tokens", "threads", "load_per_core")
    return {
        **{what: table[what].iloc[0] for what in conditions},
        "median_seconds": wide.median().to_dict(),
        "ratio_to_standard": {
            way: {"median": ratio.median(), "least": ratio.min(), "most": ratio.max()}
            for way in ("plain", "full_svd")
            for ratio in [wide[way] / wide["standard"]]
        },
    }
