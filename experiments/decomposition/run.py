"""e = i + h + f + c: what inputs, heads, feed-forwards and biases have in BERTs' embeddings.

    python -m experiments.decomposition.run --run     (eight minutes on one core)
    python -m experiments.decomposition.run --plot

Mickus, Paperno & Constant (2022): Figures 2 and 3, Table 2 and Appendix B. MiniLM on tweets and the
BERT of reactions, pretrained and finetuned, stand in for BERT-base, its finetuned variants, and
Europarl. Of the three the pretrained one has a masked-LM head. Reactions can't be had, so that
`measures.reactions` writes some from molecules. Intervals are over groups of texts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import experiments.decomposition.measures as measures
from capacity.evaluator import cluster_bootstrap, percentile_interval
from capacity.progress import bar
from experiments.common.harness import Tables, main
from experiments.common.models import Smiles, minilm, molecules, reaction_bert, tweets
from experiments.decomposition.plots import AFTER, BEFORE, ENGLISH, plot

SEEDS = (0, 1, 2)
EPOCHS = 10
# sums whose accuracies the paper compares
PAIRS = [
    ("f + c", "f"),
    ("f", "h"),
    ("h + f", "f"),
    ("i + h + f + c", "h + f + c"),
    ("i + h + f + c", "h + f"),
]


def run(smoke: bool) -> Tables:
    """Both models on their texts; with the masked-LM head, reactions and molecules."""
    groups, size, asked = (2, 24, 20) if smoke else (20, 120, 2000)
    english, tokenizer = minilm()
    before, after, smiles = reaction_bert("pretrained"), reaction_bert("finetuned"), Smiles()
    texts = tweets()["text"].sample(groups * size, random_state=0).tolist()
    words = tokenizer(texts, padding=True, return_tensors="pt")
    atoms = smiles.encode(measures.reactions(groups * size // 4))
    kinds = {"reactions": measures.reactions(asked), "molecules": molecules(2 * asked)}
    with bar() as tell:
        measured = {
            name: [
                measures.measure(model, one)
                for one in measures.in_groups(inputs, groups, name, tell)
            ]
            for name, model, inputs in (
                (ENGLISH, english, words),
                (BEFORE, before, atoms),
                (AFTER, after, atoms),
            )
        }
        default, learned = [], []
        for kind, some in kinds.items():
            table, questions = measures.answer(before, smiles, some, groups, kind, tell)
            default.append(table.assign(text=kind))
            learned += [
                measures.learn(questions, seed, 2 if smoke else EPOCHS).assign(text=kind)
                for seed in measures.told(SEEDS, f"learning from {kind}", tell)
            ]
    few = [(ENGLISH, english, words, size // 3), (BEFORE, before, atoms, size // 12)]
    return {
        "linear": pd.concat(
            measures.linear(of).assign(model=name) for name, of in measured.items()
        ),
        "importance": pd.concat(
            measures.importance(of).assign(model=name) for name, of in measured.items()
        ),
        "correlation": measures.correlation(measured[BEFORE], measured[AFTER]),
        "heads": pd.concat(measures.heads(of).assign(model=name) for name, of in measured.items()),
        "default": pd.concat(default),
        "learned": pd.concat(learned),
        "ranks": pd.concat(
            measures.ranks(model, {key: x[:n] for key, x in inputs.items()}).assign(model=name)
            for name, model, inputs, n in few
        ),
    }


def numbers(tables: Tables) -> dict[str, Any]:
    """The paper's claims, asked of each model and text."""
    return {
        "r2_of_feed_forwards": _of_each(tables["linear"], "model", _of_linear),
        "importance": _of_each(tables["importance"], "model", _of_importance),
        "spearman_of_pretrained_and_finetuned": _of_finetuning(tables["correlation"]),
        "accuracy_of_sums": {
            text: {**own, **_of_learned(tables["learned"].query("text == @text"))}
            for text, own in _of_each(tables["default"], "text", _of_default).items()
        },
        "rank_of_c": _of_each(tables["ranks"], "model", _of_ranks),
        "heads_in_the_last_embedding": _of_each(tables["heads"], "model", _of_heads),
    }


def _of_each(
    table: pd.DataFrame, key: str, of: Callable[[pd.DataFrame], dict[str, Any]]
) -> dict[str, Any]:
    return {str(name): of(part) for name, part in table.groupby(key, sort=False)}


def _means(table: pd.DataFrame, keys: list[str], of: str) -> dict[str, Any]:
    """Mean over groups of texts and its interval, in a dictionary for each key."""
    wide = table.pivot_table(index="group", columns=keys, values=of, sort=False)
    weights = np.stack(list(cluster_bootstrap(wide.index, 1000)))
    draws = weights @ wide.to_numpy(np.float64) / weights.sum(1, keepdims=True)
    found: dict[str, Any] = {}
    for column, mean, draw in zip(wide.columns, wide.mean(), draws.T, strict=True):
        *outer, last = map(str, column if isinstance(column, tuple) else (column,))
        place = found
        for key in outer:
            place = place.setdefault(key, {})
        place[last] = {"mean": mean, "interval": percentile_interval(draw)}
    return found


def _of_linear(table: pd.DataFrame) -> dict[str, Any]:
    by = _means(table, ["scored", "layer"], "r2")
    unexplained = [1 - one["mean"] for one in by["held out"].values()]
    return {
        **by,
        "unexplained_held_out": [min(unexplained), max(unexplained)],
        "tokens_fitted": int(table["tokens_fitted"].min()),
    }


def _of_importance(table: pd.DataFrame) -> dict[str, Any]:
    """By term and layer, and what the paper says of Figure 3a."""
    mean = table.pivot_table(index="term", columns="layer", values="importance")
    # of the embeddings' norm, layer 0, h and f know nothing
    after = mean.drop(columns=0)
    h, f, c = (after.loc[term].to_numpy() for term in "hfc")
    return {
        "by_layer": _means(table, ["term", "layer"], "importance"),
        "most_important_by_layer": mean.idxmax().tolist(),
        "layers": len(h),
        "layers_where_i_shrinks": int((np.diff(mean.loc["i"].to_numpy()) < 0).sum()),
        "layers_where_f_is_at_least_0.4": int((f >= 0.4).sum()),
        "layers_where_h_exceeds_c": int((h > c).sum()),
        "layers_where_h_exceeds_0.3": int((h > 0.3).sum()),
        "largest_h": h.max(),
        "largest_c": c.max(),
        "mean_of_h_minus_c": (h - c).mean(),
        "tokens": int(table.query("layer == 0 and term == 'i'")["tokens"].sum()),
    }


def _of_finetuning(table: pd.DataFrame) -> dict[str, Any]:
    terms = table.pivot_table(index=["group", "layer"], columns="term", values="rho")
    over = terms.sub(terms["h"], axis=0).drop(columns="h").reset_index()
    half = np.where(table["layer"] > table["layer"].max() / 2, 1.0, -1.0)
    return {
        "by_layer": _means(table, ["term", "layer"], "rho"),
        "mean_over_layers": _means(table, ["term"], "rho"),
        "mean_over_layers_above_that_of_h": {
            term: _means(over.assign(which=term), ["which"], term)[term] for term in "ifc"
        },
        # half of the rows are in either half: the mean of signed rho is half the difference
        "upper_half_minus_lower_half": _means(
            table.assign(signed=2 * half * table["rho"]), ["term"], "signed"
        ),
        "least_correlated_by_layer": terms.groupby("layer").mean().idxmin(axis=1).tolist(),
    }


def _of_default(table: pd.DataFrame) -> dict[str, Any]:
    table = table.assign(accuracy=table["hits"] / table["n"])
    by = _means(table, ["places", "sum"], "accuracy")
    chosen = table[table["places"] == "chosen"]
    wide = chosen.pivot_table(index="group", columns="sum", values="accuracy")
    gains = [wide.assign(pair=f"{a} minus {b}", gain=wide[a] - wide[b]) for a, b in PAIRS]
    return {
        "default": by["chosen"],
        "default_at_really_masked": by["masked"],
        "default_differences": _means(pd.concat(gains).reset_index(), ["pair"], "gain"),
        "questions": int(chosen.loc[chosen["sum"] == "i", "n"].sum()),
    }


def _of_learned(table: pd.DataFrame) -> dict[str, Any]:
    runs = table.pivot_table(index="seed", columns="sum", values="accuracy", sort=False)
    gains = pd.DataFrame({f"{a} minus {b}": runs[a] - runs[b] for a, b in PAIRS})
    last = table["epoch"] == table["epoch"].max()
    return {
        "learned": _spread(runs),
        "learned_differences": _spread(gains),
        "most_frequent_token": table["most_frequent"].mean(),
        "questions_trained_on": int(table["n_train"].min()),
        "words_among_the_questions": int(table["n_words"].max()),
        "share_of_classifiers_best_at_the_last_epoch": last.mean(),
    }


def _spread(runs: pd.DataFrame) -> dict[str, Any]:
    return {
        str(name): {"mean": of.mean(), "standard_deviation": of.std(), "runs": of.tolist()}
        for name, of in runs.items()
    }


def _of_ranks(table: pd.DataFrame) -> dict[str, Any]:
    return {
        **{key: table[key].tolist() for key in ("rank", "bound", "paper")},
        "layers_where_the_paper's_is_exceeded": int((table["rank"] > table["paper"]).sum()),
        "layers_where_the_bound_is_exceeded": int((table["rank"] > table["bound"]).sum()),
        "relative_error_of_the_sum": table["error"].max(),
        "tokens": int(table["tokens"].max()),
    }


def _of_heads(table: pd.DataFrame) -> dict[str, Any]:
    by_layer = table.groupby("layer")["importance"].sum()
    return {
        "sum": by_layer.sum(),
        "by_layer": by_layer.tolist(),
        "largest": table.nlargest(3, "importance").drop(columns="model").to_dict("records"),
        "negative": int((table["importance"] < 0).sum()),
        "heads": len(table),
    }


if __name__ == "__main__":
    main("decomposition", run, numbers, plot)
