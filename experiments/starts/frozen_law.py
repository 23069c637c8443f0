"""The law of frozen gates: what a layer holds with its queries and keys frozen, foretold.

    python -m experiments.starts.frozen_law --run
    python -m experiments.starts.frozen_law --plot

With gates that don't depend on the subject, the residual stream of a predicate is a linear map of
the subject's embedding, of rank at most min(n_heads d_head_vo, d_model). That suggests

    N = c d_model min(n_heads d_head_vo, d_model)^b

for the number N of triples that half of the databases are held at, and no more from heads beyond
n_heads d_head_vo = d_model. Fixed before the run:

* each of `FORMS` is fitted by least squares to the logarithms of the frozen sizes of `half_sizes`
  (some of 8 starts), of the layers whose size lies within its grid;
* it is asked about `LAYERS`, with d_model from 3 to 24 and 1 to 32 heads, none of which is among
  those, on `DATABASES` fresh databases a size, in the same way;
* H5: the form above has a median error |log(size found / size foretold)| below `ERROR` nats;
* H6: it is less than that of equation (9), N = c (d_model + n_heads d_head_vo)^b.

Each *holds here* if the whole interval does, over the fresh layers (and for H6 of the difference of
the two medians), of those whose size lies within the grid. The forms were chosen after tables of
others (`law_of_layers`), in which luck and capacity are mixed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from numpy.typing import NDArray
from scipy.optimize import least_squares

from capacity import LayerConfig
from capacity.evaluator import percentile_interval
from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from capacity.progress import bar
from experiments.common.drawing import REFERENCE, headline
from experiments.common.harness import Tables, committed, main, rows_of
from experiments.starts.half_sizes import FROZEN, bisected, half_of

DATABASES, ERROR, RESAMPLES = 6, 0.25, 2000
# (d_model, n_heads, d_head_vo): sizes of at most 1,100 triples by the form at c = 30, b = 1. Seven
# larger ones were left out, after the bisection of one of them, since they take half an hour each
LAYERS = [
    LayerConfig(d, heads, 2, vo)
    for d, heads, vo in (
        (3, 3, 1), (3, 32, 1), (4, 3, 1), (4, 12, 1), (4, 32, 1), (7, 1, 1), (7, 1, 3), (7, 2, 2),
        (10, 1, 1), (10, 3, 1), (12, 1, 2), (12, 3, 1), (16, 1, 1), (24, 1, 1),
    )
]  # fmt: skip
# after those of `half_sizes`
FIRST_SEED = 2000

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Form:
    """Logarithm of the size, of parameters and of d_model, n_heads and d_head_vo."""

    told: str
    log_size: Callable[[Values, Values, Values, Values], Values]
    start: tuple[float, ...]


def _soft(t: Values, d: Values, heads: Values, vo: Values) -> Values:
    smaller = 1 / (1 / (heads * vo) + 1 / (np.exp(t[2]) * d))
    return t[0] + np.log(d) + t[1] * np.log(smaller)


FORMS = {
    "frozen gates": Form(
        "c d_model min(n_heads d_head_vo, d_model)^b",
        lambda t, d, h, vo: t[0] + np.log(d) + t[1] * np.log(np.minimum(h * vo, d)),
        (3.0, 1.0),
    ),
    "soft": Form(
        "c d_model S^b, 1 / S = 1 / (n_heads d_head_vo) + 1 / (B d_model)", _soft, (3.0, 1.0, 0.0)
    ),
    "equation (9)": Form(
        "c (d_model + n_heads d_head_vo)^b",
        lambda t, d, h, vo: t[0] + t[1] * np.log(d + h * vo),
        (3.0, 1.0),
    ),
    "a power of each": Form(
        "c d_model^a n_heads^b d_head_vo^e",
        lambda t, d, h, vo: t[0] + t[1] * np.log(d) + t[2] * np.log(h) + t[3] * np.log(vo),
        (3.0, 1.0, 1.0, 1.0),
    ),
}


def run(smoke: bool) -> Tables:
    """A row for each run of each bisection."""
    tasks = [
        (layer.name, 2 if smoke else DATABASES, 200 if smoke else 2000)
        for layer in (LAYERS[:2] if smoke else LAYERS)
    ]
    with bar() as tell:
        found = rows_of("frozen_law", bisection_of, tasks, tell, in_process=smoke, cost=_cost_of)
    runs = pd.DataFrame([row for each in found for row in each["runs"]])
    return {"runs": runs.sort_values(["layer_id", "n_asked", "seed"], ignore_index=True)}


def bisection_of(task: tuple[str, int, int]) -> dict[str, Any]:
    """All runs of the bisection of one layer."""
    name, count, epochs = task
    return {"runs": bisected(_named(name), FROZEN, count, epochs, FIRST_SEED)}


def _named(name: str) -> LayerConfig:
    return next(each for each in LAYERS if each.name == name)


def _cost_of(task: tuple[str, int, int]) -> float:
    layer = _named(task[0])
    return float(layer.d_model**2 * min(layer.n_heads * layer.d_head_vo, layer.d_model))


def numbers(tables: Tables) -> dict[str, Any]:
    """Sizes that each form foretells of the fresh layers, and the verdicts."""
    known = sizes_of(committed("half_sizes", "runs"))
    fresh = sizes_of(tables["runs"])
    errors: dict[str, Values] = {}
    found: dict[str, Any] = {}
    inside = fresh["size"].notna().to_numpy()
    for name, form in FORMS.items():
        fitted = fit(form, known.dropna())
        foretold = np.exp(_log_sizes(form, fitted, fresh))
        errors[name] = np.abs(np.log(fresh["size"][inside] / foretold[inside])).to_numpy()
        residuals = np.log(known.dropna()["size"]) - _log_sizes(form, fitted, known.dropna())
        found[name] = {
            "told": form.told,
            "parameters": list(fitted),
            "median_error_of_known": float(np.median(np.abs(residuals))),
            "foretold": list(foretold),
        }
    drawn = _resamples(int(inside.sum()))
    for name, of in errors.items():
        medians = np.median(of[drawn], axis=1)
        less = medians - np.median(errors["equation (9)"][drawn], axis=1)
        found[name] |= {
            "error": {"value": np.median(of), "interval": percentile_interval(medians)},
            "less_than_9": {
                "value": np.median(of) - np.median(errors["equation (9)"]),
                "interval": percentile_interval(less),
            },
        }
    ours = found["frozen gates"]
    return {
        "layers": fresh.to_dict("records"),
        "known": {"layers": len(known), "within_the_grid": int(known["size"].notna().sum())},
        "within_the_grid": int(inside.sum()),
        "forms": found,
        "hypotheses": {
            "H5": _verdict(ours["error"]["interval"][1] < ERROR),
            "H6": _verdict(ours["less_than_9"]["interval"][1] < 0),
        },
    }


def sizes_of(runs: pd.DataFrame) -> pd.DataFrame:
    """The size of each layer that was bisected with frozen queries and keys; NaN off the grid."""
    frozen = runs[runs["way"] == FROZEN]
    rows: list[dict[str, Any]] = []
    for (name, d, heads, vo), part in frozen.groupby(
        ["layer_id", "d_model", "n_heads", "d_head_vo"], sort=False
    ):
        rows.append(
            {"layer": name, "d_model": d, "n_heads": heads, "d_head_vo": vo,
             "size": half_of(part).size}
        )  # fmt: skip
    return pd.DataFrame(rows)


def fit(form: Form, known: pd.DataFrame) -> Values:
    """Parameters by least squares on the logarithms of the sizes."""
    logs = np.log(known["size"].to_numpy(float))
    found = least_squares(lambda t: _log_sizes(form, t, known) - logs, form.start)
    return np.asarray(found.x)


def _log_sizes(form: Form, parameters: Values, layers: pd.DataFrame) -> Values:
    sizes = (layers[name].to_numpy(float) for name in ("d_model", "n_heads", "d_head_vo"))
    return form.log_size(parameters, *sizes)


def _resamples(n: int) -> NDArray[np.int64]:
    return np.random.default_rng(0).integers(n, size=(RESAMPLES, n))


def _verdict(is_so: bool) -> str:
    return "holds here" if is_so else "not seen here"


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Sizes found beside those predicted, by two forms."""
    fresh = pd.DataFrame(found["layers"])
    figure = Figure(figsize=(WIDTH, 3.8))
    panels = figure.subplots(1, 2, sharey=True)
    for axes, name in zip(panels, ("frozen gates", "equation (9)"), strict=True):
        form = found["forms"][name]
        foretold = np.array(form["foretold"])
        for d, colour, marker in zip(
            sorted(fresh["d_model"].unique()), 2 * list(COLOURS), 2 * list(MARKERS), strict=False
        ):
            at = (fresh["d_model"] == d).to_numpy()
            axes.loglog(
                foretold[at], fresh["size"][at], marker, color=colour, markersize=5, label=f"{d}"
            )
        ends = [foretold.min() / 1.5, foretold.max() * 1.5]
        axes.plot(ends, ends, color=REFERENCE, linewidth=0.8, label="as predicted")
        error = form["error"]
        low, high = error["interval"]
        axes.set(
            title=f"{form['told']}\nmedian error {error['value']:.2f} [{low:.2f}, {high:.2f}] nats",
            xlabel="triples predicted",
        )
        axes.title.set_fontsize(8)
        axes.xaxis.set_minor_formatter(NullFormatter())
    panels[0].set_ylabel("triples that are held, for half of the databases")
    panels[0].legend(title="d_model", fontsize=7)
    headline(
        figure, "Sizes of fresh layers with frozen queries and keys, predicted from smaller ones"
    )
    return {"sizes": figure}


if __name__ == "__main__":
    main("frozen_law", run, numbers, plot)
