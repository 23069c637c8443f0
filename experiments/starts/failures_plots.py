"""Gates by epoch, reliability by starting weights and by way, and facts gained, drawn."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from experiments.common.drawing import REFERENCE, estimates, headline, told
from experiments.starts.failures_numbers import ALL

# failed, held, frozen: one colour a meaning in all panels
SHIFT = {"failed": -0.08, "held": 0.0, "frozen": 0.08, "trained": -0.08}
FAILED, HELD, FROZEN, RELEASED, BACK = COLOURS[3], COLOURS[0], COLOURS[2], COLOURS[1], COLOURS[4]


def drawn(found: dict[str, Any]) -> dict[str, Figure]:
    """Gates with starting weights, and release with what W_Q and W_K gain."""
    gates, release = (Figure(figsize=(WIDTH, 3.6)) for _ in range(2))
    epochs, factors = gates.subplots(1, 2)
    _by_epoch(epochs, found["gates"])
    _by_factor(factors, found["weights"]["cells"][ALL])
    headline(
        gates,
        "Training saturates gates within 50 epochs, and starts with more saturated gates fail\n"
        "more often; frozen ones do so too once they are drawn saturated",
    )
    ways, sizes = release.subplots(1, 2)
    _by_way(ways, found["release"]["cells"])
    _by_size(sizes, found["limit"]["gained"])
    loss = found["release"]["differences"][ALL]["frozen"]
    headline(
        release,
        "Trained once the rest is, W_Q and W_K cost little reliability, "
        f"{told(loss, interval=True)},\nand no gain of facts over layers kept frozen is seen",
    )
    return {"gates": gates, "release": release}


def _by_epoch(axes: Axes, gates: dict[str, Any]) -> None:
    names = {"failed": (FAILED, "failed"), "held": (HELD, "held"),
             "frozen": (FROZEN, "W_Q, W_K frozen")}  # fmt: skip
    for (part, (colour, label)), marker in zip(names.items(), MARKERS, strict=False):
        of = gates["by_epoch"][ALL][part]
        places = [x + SHIFT[part] for x in range(len(of))]
        estimates(axes, places, [each["saturated"] for each in of.values()],
                  colour=colour, marker=marker, label=label, line="-")  # fmt: skip
    by = gates["by_epoch"][ALL]
    epochs = list(by["held"] or by["failed"])
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
        x = [place + 1.5 * SHIFT[way] for place in places.values()]
        estimates(axes, x, [each["reliability"] for each in of], colour=colour, marker=marker,
                  label=f"{way}: reliability")  # fmt: skip
        estimates(axes, x, [each["saturated"] for each in of], colour=colour, marker=marker,
                  label=f"{way}: saturated", hollow=True)  # fmt: skip
    axes.set(
        title="Starting weights of W_Q and W_K times\na factor, or scaled attention; all layers",
        xlabel="factor of W_Q and of W_K", ylabel="share of starts, of gates", ylim=(-0.03, 1.45),
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
    axes.axvline(0, color=REFERENCE, linewidth=0.8, linestyle=":", label="kept frozen")
    axes.set(
        title="At the limit of frozen layers: facts\nthat W_Q and W_K gain",
        xlabel="facts by argmax, a parameter of theirs", yticks=range(len(names)),
        ylim=(-0.6, len(names) + 4.4),
    )  # fmt: skip
    axes.set_yticklabels([name.removesuffix(" triples") for name in names], fontsize=7)
    axes.legend(loc="upper left")
