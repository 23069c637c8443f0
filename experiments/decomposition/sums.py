"""Conclusions on what words are told by sums of terms: accuracies, and their comparisons."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from experiments.common.conclusions import adjusted
from experiments.decomposition.intervals import Found, together

# sums whose accuracies the paper compares: the first minus the second
ADDING_C = [(f"{of} + c", of) for of in ("f", "i + f", "h + f", "i + h + f")]
PAIRS = [
    *ADDING_C,
    ("f", "h"),
    ("h + f", "f"),
    ("i + h + f + c", "i + h + c"),
    ("i + h + f + c", "h + f + c"),
]
FREQUENT = "c minus the most frequent token"


def of_sums(default: pd.DataFrame, learned: pd.DataFrame) -> Found:
    """Accuracies by text; each family of comparisons is that of both texts."""
    accuracy: Any = default.assign(accuracy=default["hits"] / default["n"]).pivot_table(
        index="group", columns=["text", "places", "sum"], values="accuracy", sort=False
    )
    texts = list(accuracy.columns.unique("text"))
    chosen = accuracy.xs("chosen", axis=1, level="places")
    gains = pd.DataFrame(
        {(text, f"{a} minus {b}"): chosen[text, a] - chosen[text, b]
         for text in texts for a, b in PAIRS}
    )  # fmt: skip
    differences = together(gains)
    runs = {
        text: table.pivot_table(index="seed", columns="sum", values="accuracy", sort=False)
        for text, table in learned.groupby("text")
    }
    frequent = learned.groupby(["text", "seed"])["most_frequent"].first()
    told = {
        (text, pair): _student(of)
        for text in texts
        for pair, of in {
            **{f"{a} minus {b}": runs[text][a] - runs[text][b] for a, b in PAIRS},
            FREQUENT: runs[text]["c"] - frequent[text],
        }.items()
    }
    adjusted(list(told.values()))
    return {
        text: {
            "default": together(accuracy[text, "chosen"]),
            "default_at_really_masked": together(accuracy[text, "masked"]),
            "largest_change_at_really_masked": (
                (accuracy[text, "chosen"] - accuracy[text, "masked"]).mean().abs().max()
            ),
            "default_differences": differences[text],
            "comparisons": gains.shape[1],
            "best_by_default": chosen[text].mean().idxmax(),
            "learned": {name: _student(of) for name, of in runs[text].items()},
            "learned_differences": {pair: one for (of, pair), one in told.items() if of == text},
            "most_frequent_token": frequent[text].mean(),
            **_of_questions(
                default.query("text == @text and places == 'chosen' and sum == 'i'"),
                learned.query("text == @text"),
            ),
        }
        for text in texts
    }


def _of_questions(default: pd.DataFrame, learned: pd.DataFrame) -> Found:
    return {
        "questions": int(default["n"].sum()),
        "splits": learned["seed"].nunique(),
        "questions_trained_on": int(learned["n_train"].min()),
        "questions_of_a_test": int(learned["n_test"].min()),
        "words_among_the_questions": int(learned["n_words"].max()),
        "share_of_classifiers_best_at_the_last_epoch": (
            learned["epoch"] == learned["epoch"].max()
        ).mean(),
    }


def _student(of: pd.Series[float]) -> Found:
    """Mean over splits, Student's interval, and the probability of it if the true one is 0."""
    values = of.to_numpy(np.float64)
    error, freedom = stats.sem(values), len(values) - 1
    half = float(stats.t.ppf(0.975, freedom) * error)
    mean = values.mean()
    p = 2 * stats.t.sf(abs(mean) / error, freedom) if error > 0 else float(math.isclose(mean, 0))
    return {"mean": mean, "interval": [mean - half, mean + half], "runs": values.tolist(), "p": p}
