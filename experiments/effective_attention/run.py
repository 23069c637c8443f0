"""Does effective attention disregard [SEP] but not [CLS]? The claims of Sun and Marasovic (2021).

    python -m experiments.effective_attention.run --run     (one minute on one core)
    python -m experiments.effective_attention.run --plot

For BERT-base on GLUE stand MiniLM (d_head_vo 32) on pairs of tweets, and a BERT of reactions
(d_head_vo 64), before and after finetuning, on molecules of MOSES. Every sentence has more tokens
than d_head_vo: up to that effective attention is attention. Rows are those of tokens that aren't
delimiters unless it says otherwise; heads are averaged first, and intervals are over sentences.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike

from capacity.evaluator.bootstrap import cluster_bootstrap, percentile_interval
from capacity.progress import bar
from capacity.transformer import capture
from experiments.common.harness import Tables, main
from experiments.common.models import CLS, SEP, minilm, reaction_bert
from experiments.common.texts import KINDS, reactions, tweet_pairs
from experiments.effective_attention.measures import (
    ATTENTIONS,
    SHAPES,
    cosines,
    example,
    of_sentence,
    times,
    with_padding,
)
from experiments.effective_attention.plots import TEXTS, plot

TWEETS = dict(zip((64, 128), TEXTS[:2], strict=True))
PRETRAINED, FINETUNED = TEXTS[2:]
CELL = ["texts", "attention", "layer", "kind"]
RESAMPLES = 1000


def run(smoke: bool) -> Tables:
    """Every sentence in its models, under three kinds of attention; then padding, and times."""
    n = 1 if smoke else 32
    model, tokenizer = minilm()
    berts = {PRETRAINED: reaction_bert("pretrained"), FINETUNED: reaction_bert("finetuned")}
    jobs = [
        (i, sentence, {name: model})
        for length, name in TWEETS.items()
        for i, sentence in enumerate(tweet_pairs(tokenizer, n, length))
    ] + [(i, sentence, berts) for i, sentence in enumerate(reactions(n))]
    parts: dict[str, list[pd.DataFrame]] = defaultdict(list)
    with bar() as tell, torch.no_grad():
        for done, (i, sentence, models) in enumerate(jobs, start=1):
            caught = {name: capture(of, sentence.inputs) for name, of in models.items()}
            for name, captured in caught.items():
                for key, table in of_sentence(sentence, captured).items():
                    parts[key].append(table.assign(texts=name, sentence=i))
            if models is berts:
                parts["cosine"].append(cosines(*caught.values()).assign(sentence=i))
            tell("sentences", done, len(jobs))
        tables = {key: _coarse(pd.concat(of, ignore_index=True)) for key, of in parts.items()}
        first = jobs[0][1]
        of_first = tables["shares"][tables["shares"]["texts"] == TWEETS[64]]
        at = capture(model, first.inputs)
        tables["example"] = _coarse(example(of_first, at, first))
        tables["padding"] = with_padding(model, tokenizer, n)
        timed = {
            TWEETS[128]: (model, jobs[n : 2 * n]),
            FINETUNED: (berts[FINETUNED], jobs[2 * n :]),
        }
        tables["times"] = pd.concat(
            times(of, [s.inputs for _, s, _ in some[:8]], 1 if smoke else 5).assign(texts=name)
            for name, (of, some) in timed.items()
        )
    for key, values in (("shares", ["share", "weight"]), ("final", ["largest"])):
        every = tables.pop(key).groupby
        for by in ("sentence", "head"):
            means = every([*CELL, by], sort=False, as_index=False)[values].mean()
            tables[f"{key}-by-{by}"] = _coarse(means)
    return tables


def _coarse(table: pd.DataFrame) -> pd.DataFrame:
    """Real numbers to multiples of 2^-13, which take a third of the room."""
    real = table.select_dtypes("number").columns.difference(table.select_dtypes("int").columns)
    return table.assign(**{name: (table[name] * 2**13).round() / 2**13 for name in real})


def numbers(tables: Tables) -> dict[str, Any]:
    """The paper's figures and tables as numbers, with intervals over sentences."""
    shares, leverage = tables["shares-by-sentence"], tables["leverage"]
    shapes, final = tables["shapes"], tables["final-by-sentence"]
    heads = tables["shares-by-head"]
    return {
        "sentences": int(shares["sentence"].nunique()),
        "figure_2": _of_example(tables["example"]),
        "figures_5_and_6": {
            name: {
                **_delimiters(shares[shares["texts"] == name]),
                **{
                    value: _by_column(leverage[leverage["texts"] == name], "kind", value)
                    for value in ("leverage", "size")
                },
                "heads_with_half_on": {
                    kind: _heads_with_half(
                        heads[(heads["texts"] == name) & (heads["kind"] == kind)]
                    )
                    for kind in (CLS, SEP)
                },
            }
            for name in TEXTS
        },
        "figure_1_largest_weight": {
            name: {
                attention: _by_column(part, "kind", "largest")
                for attention, part in final[final["texts"] == name].groupby(
                    "attention", sort=False
                )
            }
            for name in TEXTS
        },
        "table_2": {name: _shapes(shapes[shapes["texts"] == name]) for name in TEXTS},
        "figure_3": _finetuning(tables["cosine"]),
        "table_3": {name: _speed(part) for name, part in tables["times"].groupby("texts")},
        "with_padding": {
            what: _mean(tables["padding"].groupby("sentence")[what].mean())
            for what in tables["padding"].columns.drop(["sentence", "layer"])
        },
    }


def _of_example(table: pd.DataFrame) -> dict[str, Any]:
    """Mean weight on delimiters, in rows of other tokens."""
    delimiter = table.loc[table["row"] == 0, "token"].isin([CLS, SEP]).to_numpy()
    rows = table[~delimiter[table["row"]]]
    on = {kind: rows.loc[rows["token"] == kind, list(ATTENTIONS)].sum() for kind in (CLS, SEP)}
    return {
        **{name: int(table[name].iloc[0]) for name in ("layer", "head")},
        **{kind: (sums / (~delimiter).sum()).to_dict() for kind, sums in on.items()},
    }


@cache
def _weights(n: int) -> np.ndarray:
    """Draws of how often each sentence counts."""
    return np.stack(list(cluster_bootstrap(np.arange(n), RESAMPLES))) / n


def _mean(values: pd.Series) -> dict[str, Any]:
    v = values.dropna().to_numpy(np.float64)
    return {"mean": v.mean(), "interval": percentile_interval(_weights(len(v)) @ v)}


def _ratio(above: pd.Series, below: pd.Series) -> dict[str, Any]:
    a, b = above.to_numpy(np.float64), below.to_numpy(np.float64)
    W = _weights(len(a))
    return {"ratio": a.mean() / b.mean(), "interval": percentile_interval((W @ a) / (W @ b))}


def _by_column(table: pd.DataFrame, column: str, value: str) -> dict[str, Any]:
    """Means of sentences for each value of a column."""
    wide = table.pivot_table(index="sentence", columns=column, values=value, sort=False)
    return {str(name): _mean(wide[name]) for name in wide}


def _by_layer(table: pd.DataFrame, value: str) -> dict[str, list[float]]:
    of = _by_column(table, "layer", value).values()
    low, high = zip(*(one["interval"] for one in of), strict=True)
    return {"mean": [one["mean"] for one in of], "low": list(low), "high": list(high)}


def _delimiters(table: pd.DataFrame) -> dict[str, Any]:
    """Weights and shares by kinds; what of them is left by projection, and of which kind less."""
    found: dict[str, Any] = {}
    for value in ("weight", "share"):
        wide = table.pivot_table(
            index="sentence", columns=["attention", "kind"], values=value, sort=False
        )
        left = {
            mode: {kind: _ratio(wide[mode, kind], wide["standard", kind]) for kind in KINDS}
            for mode in ("plain", "simplex")
        }
        found[value] = {
            attention: {
                kind: {
                    **_mean(wide[attention, kind]),
                    "by_layer": _by_layer(of_attention[of_attention["kind"] == kind], value),
                }
                for kind in KINDS
            }
            for attention, of_attention in table.groupby("attention", sort=False)
        }
        found[f"{value}_left"] = left
    return found


def _heads_with_half(table: pd.DataFrame) -> dict[str, Any]:
    """Number of heads that give a kind more than half of their weight, or share."""
    return {
        "heads": len(table) // len(ATTENTIONS),
        **{
            value: {
                k: int((of[value] > 0.5).sum()) for k, of in table.groupby("attention", sort=False)
            }
            for value in ("weight", "share")
        },
    }


def _shapes(table: pd.DataFrame) -> dict[str, Any]:
    wide = table.pivot_table(index="sentence", columns="attention", values=list(SHAPES))
    return {
        shape: {attention: _mean(wide[shape, attention]) for attention in ATTENTIONS}
        | {"plain_less_standard": _mean(wide[shape, "plain"] - wide[shape, "standard"])}
        for shape in SHAPES
    }


def _finetuning(table: pd.DataFrame) -> dict[str, Any]:
    """Layers by cosine, and whether effective attention puts them in the same order."""
    wide = {
        attention: part.pivot_table(index="sentence", columns="layer", values="cosine")
        for attention, part in table.groupby("attention", sort=False)
    }
    draws = {k: _weights(len(x)) @ x.to_numpy(np.float64) for k, x in wide.items()}
    return {
        "cosine": {k: _by_layer(table[table["attention"] == k], "cosine") for k in ATTENTIONS},
        "layers_by_change": {k: [int(n) for n in x.mean().sort_values().index]
                             for k, x in wide.items()},
        "rank_correlation_of_layers_with_standard": {
            k: {
                "value": float(_rank_correlation(wide["standard"].mean(), wide[k].mean())),
                "interval": percentile_interval(_rank_correlation(draws["standard"], draws[k])),
            }
            for k in ("plain", "simplex")
        },
    }  # fmt: skip


def _rank_correlation(first: ArrayLike, second: ArrayLike) -> np.ndarray:
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


if __name__ == "__main__":
    main("effective_attention", run, numbers, plot)
