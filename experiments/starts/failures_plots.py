"""Gates by epoch, reliability by starting weights and by way, and facts gained, drawn."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from experiments.common.drawing import REFERENCE, estimates, headline, told
from experiments.starts.failures_numbers import ALL

# failed, held, frozen: one colour a meaning in all panels
FAILED, HELD, FROZEN, RELEASED, BACK = COLOURS[3], COLOURS[0], COLOURS[2], COLOURS[1], COLOURS[4]


def drawn(found: dict[str, Any]) -> dict[str, Figure]:
    """Four panels."""
    figure = Figure(figsize=(WIDTH, 6.4))
    panels = figure.subplots(2, 2)
    _by_epoch(panels[0, 0], found["gates"])
    _by_factor(panels[0, 1], found["weights"]["cells"][ALL])
    _by_way(panels[1, 0], found["release"]["cells"])
    _by_size(panels[1, 1], found["limit"]["gained"])
    headline(
        figure,
        "Training saturates gates within 50 epochs, and starts whose gates saturate most fail:\n"
        "frozen ones fail as well once they are drawn saturated",
    )
    return {"failures": figure}


def _by_epoch(axes: Axes, gates: dict[str, Any]) -> None:
    names = {"failed": (FAILED, "failed"), "held": (HELD, "held"),
             "frozen": (FROZEN, "W_Q, W_K frozen")}  # fmt: skip
    for (part, (colour, label)), marker in zip(names.items(), MARKERS, strict=False):
        of = gates["by_epoch"][ALL][part]
        estimates(axes, range(len(of)), [each["saturated"] for each in of.values()],
                  colour=colour, marker=marker, label=label, line="-")  # fmt: skip
    epochs = list(gates["by_epoch"][ALL]["held"] or of)
    area = gates["foretold"][ALL]
    early = area.get("200", list(area.values())[-1])
    axes.set(
        title=f"Gates by epoch: AUC at epoch 200\n{told(early['gates'], interval=True)}",
        xlabel="epochs done", ylabel="share of gates within 1e-3 of 0 or 1", ylim=(0, 0.9),
        xticks=range(len(epochs)), xticklabels=epochs,
    )  # fmt: skip
    axes.legend(loc="upper left", ncols=2)


def _by_factor(axes: Axes, cells: dict[str, Any]) -> None:
    names = [name for name in cells["trained"] if name.startswith("times")]
    places = {**{name: float(i) for i, name in enumerate(names)}, "scaled": len(names) + 0.0}
    for way, colour, marker in (("trained", HELD, MARKERS[0]), ("frozen", FROZEN, MARKERS[2])):
        of = [cells[way][name] for name in places]
        estimates(axes, list(places.values()), [each["reliability"] for each in of], colour=colour,
                  marker=marker, label=f"{way}: reliability")  # fmt: skip
        estimates(axes, list(places.values()), [each["saturated"] for each in of], colour=colour,
                  marker=marker, label=f"{way}: saturated", hollow=True)  # fmt: skip
    axes.set(
        title="Starting weights of W_Q and W_K times\na factor, or scaled attention",
        xlabel="factor", ylabel="share of starts, of gates", ylim=(-0.03, 1.45),
        xticks=list(places.values()),
        xticklabels=[name.removeprefix("times ") for name in places],
        yticks=[0, 0.2, 0.4, 0.6, 0.8, 1],
    )  # fmt: skip
    axes.legend(loc="upper left", ncols=2, columnspacing=0.8, handletextpad=0.2)


def _by_way(axes: Axes, cells: dict[str, Any]) -> None:
    ways = {"frozen": FROZEN, "released": RELEASED, "trained": HELD, "trained, then frozen": BACK}
    for number, (way, colour) in enumerate(ways.items()):
        places = [x + 0.15 * (number - 1.5) for x in range(len(cells))]
        estimates(axes, places, [of[way]["reliability"] for of in cells.values()], colour=colour,
                  marker=MARKERS[number], label=way)  # fmt: skip
    axes.set(
        title="W_Q and W_K frozen or trained in the\nfirst half, the second, or both",
        ylabel="share of starts that hold", ylim=(-0.03, 1.45), xticks=range(len(cells)),
        yticks=[0, 0.2, 0.4, 0.6, 0.8, 1],
    )  # fmt: skip
    axes.set_xticklabels([name.replace("-qk", "\nqk").replace(" ", "\n") for name in cells],
                         fontsize=7)  # fmt: skip
    axes.legend(loc="upper left", ncols=2)


def _by_size(axes: Axes, gained: dict[str, Any]) -> None:
    names = list(gained["released, gently"])[::-1]
    for number, (way, colour) in enumerate(
        {"released, gently": RELEASED, "W_Q and W_K alone, gently": FAILED}.items()
    ):
        places = [y + 0.3 * (0.5 - number) for y in range(len(names))]
        estimates(axes, places, [gained[way][name]["argmax"]["a_parameter"] for name in names],
                  colour=colour, marker=MARKERS[number + 1], label=way, across=True)  # fmt: skip
    axes.axvline(0, color=REFERENCE, linewidth=0.8, linestyle=":", label="going on frozen")
    axes.set(
        title="At the limit of frozen layers: facts\ngained by W_Q and W_K",
        xlabel="facts by argmax, a parameter of W_Q and W_K", yticks=range(len(names)),
        ylim=(-0.6, len(names) + 2.6),
    )  # fmt: skip
    axes.set_yticklabels([name.removesuffix(" triples") for name in names], fontsize=7)
    axes.legend(loc="upper left")
