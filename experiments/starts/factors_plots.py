"""Reach beside reliability, and the exponents of both, drawn."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from capacity.evaluator import reach_and_reliability
from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from experiments.common.drawing import REFERENCE, estimates, headline, percent, told

HEADS = (1, 2, 3, 4)
RELIABILITY, REACH = COLOURS[:2]


def drawn(pairs: pd.DataFrame, found: dict[str, Any]) -> dict[str, Figure]:
    """Shares by the number of heads, and exponents of the sizes."""
    figure = Figure(figsize=(WIDTH, 3.9))
    left, right = figure.subplots(1, 2)
    ways = found["ways"]
    trained = ways["trained, as in the paper"]
    plain = pairs[(pairs["d_model"] > 1) & ~pairs["scaled"]]
    for is_frozen, hollow in ((False, False), (True, True)):
        part = plain[plain["is_frozen"] == is_frozen]
        some = [
            reach_and_reliability(part[part["n_heads"] == n], pair=("database_id", "layer_id"))
            for n in HEADS
        ]
        shift = 0.1 if is_frozen else -0.1
        kind = "W_Q, W_K frozen" if is_frozen else "all trained"
        for name, colour, marker in (
            ("reliability", RELIABILITY, MARKERS[0]),
            ("reach", REACH, MARKERS[1]),
        ):
            of = [
                {"mean": getattr(one, name), "interval": getattr(one, f"{name}_interval")}
                for one in some
            ]
            label = f"{kind}: {'one start' if name == 'reliability' else 'some of 8'}"
            estimates(
                left, [n + shift for n in HEADS], of, colour=colour, marker=marker, hollow=hollow,
                label=label,
            )  # fmt: skip
    left.set(
        title="Share of the fresh pairs that are held,\n"
        f"all trained: {percent(trained['reliability'])} by one start, "
        f"{percent(trained['reached'])} by some of 8",
        xlabel="heads", ylabel="share held at tau = 0.95", ylim=(0, 1.02), xticks=HEADS,
    )  # fmt: skip
    laws = (
        ("one start", trained["one start"], RELIABILITY, MARKERS[0]),
        ("some of 8", trained["reach"], REACH, MARKERS[1]),
        ("8 draws, each trained and frozen", ways["either, as in the paper"]["reach"], COLOURS[2],
         MARKERS[2]),
    )  # fmt: skip
    for number, (name, law, colour, marker) in enumerate(laws):
        exponents = law["exponents"]
        places = [x + 0.2 * (number - 1) for x in range(len(exponents))]
        estimates(right, places, list(exponents.values()), colour=colour, marker=marker, label=name)
    right.axhline(0, color=REFERENCE, linewidth=0.8, linestyle=":")
    names = list(trained["reach"]["exponents"])
    right.set(
        title="Exponents in the triples that are held by half:\nheads less d_head_vo "
        f"{told(laws[2][1]['n_heads_less_d_head_vo'], interval=True)}",
        xticks=range(len(names)), xticklabels=names, ylabel="exponent",
    )  # fmt: skip
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower left", ncols=2)
    right.legend()
    headline(figure, "One start mixes what a layer can hold with how often training finds it")
    return {"reach": figure}
