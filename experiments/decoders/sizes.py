"""Reach and reliability with MLPs, norms, biases, positions and layers, at equal parameters.

    python -m experiments.decoders.sizes --run     (half an hour of processor time)
    python -m experiments.decoders.sizes --plot

A decoder reaches a database if some of several starts holds it (tau = 0.95, every fact), and its
reliability is the share of starts that do. Each of `ARCHITECTURES` is built on each of `SHAPES`,
and compared with a plain layer of as many parameters (`cells.plain_equal`): of as many in all, and
beside it (best recipe, `WITHOUT_EMBEDDINGS`) of as many without embeddings, where a plain layer of
d_model up to `MOST_D_MODEL` has so many. Fixed before the run:

* the learning rate is retuned for each architecture and recipe, out of three (`RATES`), on all
  shapes and `TUNING` databases of their own, at both numbers of facts per parameter of `DENSITIES`:
  the one of the largest sum of the share of `TUNING_STARTS` starts that hold and of the facts that
  the best of them recalls. Plain layers of as many parameters use that of the plain one;
* reach: of each decoder and database the largest number of facts, on a grid of quarter octaves,
  that some of `STARTS` starts holds, by bisection (databases of one number are nested). A size
  below the grid counts as its smallest and one above it as its largest, and both are counted;
* reliability: the share of `RELIABILITY_STARTS` fresh starts that hold databases with `DENSITIES`
  facts per parameter in all, of a decoder and of its plain layer;
* H1: at equal parameters in all, an MLP (of 1, 2 or 4 d_model, together) raises reliability: the
  whole interval of the mean difference is above zero; and reach by a factor of at most `FACTOR`:
  the whole interval of the mean ratio is at most that;
* H2: norm removes what freezing W_Q and W_K gains: freezing raises the reliability of plain layers
  (whole interval above zero), by more than it raises that of layers with layer norm (the same of
  the difference), and the gain of those lies, with its whole interval, below half of the first;
* "layer norms and biases change little" (Wong 2025, section 5.2): the ratio of reach of each to the
  plain layer lies, with its whole interval, between `1 / LITTLE` and `LITTLE`, by the best recipe.

The plain recipe is asked about the architectures of `BY_BOTH` alone. Each *holds here*, or is *not
seen here*. Intervals are over shapes and databases. Frozen decoders use the learning rate of
trained ones. A pilot on other databases chose shapes and densities. A first run had two databases,
and four more were added.
"""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from experiments.common.drawing import REFERENCE, estimates, headline
from experiments.common.harness import Tables, main
from experiments.decoders.cells import MLP_ALONE, PLAIN_LAYER
from experiments.decoders.comparisons import Kind, compared
from experiments.decoders.trainings import RECIPES, rates_of, trained

FACTOR, LITTLE = 1.5, 1.25


def run(smoke: bool) -> Tables:
    """Learning rates, bisections, starts at given sizes, and what they cost."""
    return trained(smoke)


def numbers(tables: Tables) -> dict[str, Any]:
    """Each architecture beside its plain layer, what freezing gains, and the verdicts."""
    found = {kind: compared(Kind(kind, tables)) for kind in RECIPES}
    tried = (tables[name]["starts_tried"].sum() for name in ("tuning", "sizes", "starts"))
    best = found["best"]["architectures"]
    little = [best[name]["total"]["interval"] for name in ("layer norm", "biases")]
    return {
        "cpu_seconds": float(tables["costs"]["cpu_seconds"].sum()),
        "trainings": int(sum(tried)),
        "learning_rates": rates_of(tables["tuning"]),
        "recipes": found,
        "verdicts": {
            "an MLP raises reliability": {
                kind: _verdict(of["MLPs"]["gain"]["interval"][0] > 0) for kind, of in found.items()
            },
            "an MLP raises reach by at most 1.5": {
                kind: _verdict(of["MLPs"]["total"]["interval"][1] <= FACTOR)
                for kind, of in found.items()
            },
            "norm removes what freezing gains": {
                kind: _verdict(_removes(of["freezing"])) for kind, of in found.items()
            },
            "layer norms and biases change little": _verdict(
                all(low >= 1 / LITTLE and high <= LITTLE for low, high in little)
            ),
        },
    }


def _removes(freezing: dict[str, Any]) -> bool:
    plain, norm = (freezing[name]["gain"] for name in (PLAIN_LAYER, "layer norm"))
    more = freezing["plain less layer norm"]
    gains = plain["interval"][0] > 0 and more["interval"][0] > 0
    return bool(gains and norm["interval"][1] < plain["mean"] / 2)


def _verdict(is_so: bool) -> str:
    return "holds here" if is_so else "not seen here"


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Reach and reliability beside plain layers, by architecture and recipe."""
    figure = Figure(figsize=(WIDTH, 5.2))
    panels = figure.subplots(1, 3, sharey=True)
    columns = {
        "total": "reach, in the plain layer's,\nof as many parameters",
        "non-embedding": "the same, of as many\nwithout embeddings",
        "gain": "share of starts, less\nthe plain layer's",
    }
    # from the top; the plain recipe is asked about some
    every = found["recipes"]["best"]["architectures"]
    names = [name for name in every if name not in (PLAIN_LAYER, MLP_ALONE)][::-1]
    for axes, (column, title) in zip(panels, columns.items(), strict=True):
        for number, (kind, of) in enumerate(found["recipes"].items()):
            told = {
                name: each[column]
                for name, each in of["architectures"].items()
                if name in names and each.get(column, {}).get("mean") is not None
            }
            places = [names.index(name) + 0.15 * (1 - 2 * number) for name in told]
            estimates(axes, places, list(told.values()), colour=COLOURS[number],
                      marker=MARKERS[number], label=kind, across=True)  # fmt: skip
        axes.set_yticks(range(len(names)), names)
        is_ratio = column != "gain"
        axes.axvline(
            1 if is_ratio else 0,
            color=REFERENCE,
            linewidth=0.8,
            linestyle=":",
            label="as the plain layer",
        )
        if is_ratio:
            axes.set_xscale("log", base=2)
        axes.set_title(title, fontsize=9)
    panels[0].axvline(FACTOR, color=REFERENCE, linewidth=0.8, linestyle="--", label="H1: 1.5")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower left", ncols=4)
    ratio = found["recipes"]["best"]["MLPs"]["total"]
    headline(
        figure,
        f"With an MLP databases of {ratio['mean']:.2f} times the size are reached "
        "at equal parameters (best recipe)",
    )
    return {"architectures": figure}


if __name__ == "__main__":
    main("decoders", run, numbers, plot)
