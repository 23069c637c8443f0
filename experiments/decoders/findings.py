"""Which findings about the paper's layer survive in decoders with MLPs, norms and layers.

    python -m experiments.decoders.findings --run     (ten minutes of processor time)
    python -m experiments.decoders.findings --plot

By the best recipe, with the learning rates that `decoders` chose. Fixed before the run:

* values against queries and keys: of two heads, `SPLITS` move dimensions from d_head_qk to
  d_head_vo at the same number of parameters, biases aside. "Values matter more" *holds here* for an
  architecture if the whole interval of the mean ratio of reach (as in `decoders`) is above one;
* the additive motif: the logits after all pairs of a subject and a predicate are fitted by a term
  of the subject and a term of the predicate (two-way means), of the best of `STARTS` starts at
  `DENSITY` facts per parameter. It survives if the share of facts that their sum recalls by argmax
  is at most `LESS` below that of plain layers, with its whole interval, in architectures with an
  MLP together;
* rank of the logits' tensor against that of argmax and of softmax >= tau after all pairs: a
  certified lower bound of the rank of argmax over the estimate of the logits' rank from above.
  "Argmax has the larger rank" *holds here* if the whole interval of the mean ratio is above one;
* where facts are: `GROUPS` of weights stay as drawn, at `DENSE` facts per parameter. The cost of
  freezing is what the best of `STARTS` starts recalls less at tau. Over architectures with an MLP:
  "the MLP holds the facts" (Geva et al. 2021; Dong et al. 2025 find that memorising is the MLP's):
  freezing the MLP costs more than freezing attention; "frozen queries and keys cost little" (Dong
  et al. 2025): at most `LITTLE`; "values or an MLP suffice" (Nichani, Lee and Bietti 2024 prove it
  for one layer): freezing either costs at most `LITTLE`. Each by its whole interval.

Intervals are over shapes and databases. A first run had two databases, and four more were added.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from capacity import Database, LayerConfig, Recipe, rank_interval
from capacity.evaluator import Threshold, decoded_facts, half_size, logit_tensor
from capacity.layer import DecoderConfig, Starts
from capacity.layer.run.recipe import Until
from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from capacity.progress import bar
from capacity.rank import numerical_rank_estimates
from capacity.sweep import Run
from experiments.common.bisections import trained_without_search
from experiments.common.drawing import REFERENCE, estimates, headline
from experiments.common.harness import BEST, Tables, committed, main, rows_of
from experiments.decoders.cells import (
    ARCHITECTURES,
    PLAIN_LAYER,
    SHAPES,
    SIZES,
    AnyConfig,
    database_of,
    decoder_of,
    parameters_of,
    size_for,
)
from experiments.decoders.findings_numbers import ASKED, WITH_MLP, numbers
from experiments.decoders.trainings import rates_of

# d_model -> (d_head_qk, d_head_vo), of two heads
SPLITS = {4: ((3, 1), (1, 3)), 6: ((5, 1), (1, 5))}
QUERIES_AND_KEYS, VALUES = ("W_Q", "W_K", "b_Q", "b_K"), ("W_V", "W_O", "b_V", "b_O")
# weights that stay as they were drawn
GROUPS: dict[str, tuple[str, ...]] = {
    "nothing": (),
    "W_E": ("W_E",),
    "W_U": ("W_U",),
    "queries and keys": QUERIES_AND_KEYS,
    "values": VALUES,
    "attention": (*QUERIES_AND_KEYS, *VALUES),
    "MLP": ("W_in", "W_out", "b_in", "b_out"),
}
DENSITY, DENSE = 0.08, 0.12
DATABASES, STARTS, TAU = 6, 4, 0.95
# so that starts are none of those of `decoders`
SEED = 2000


@dataclass(frozen=True)
class Task:
    """Trainings of one decoder on one database; its text is the key of its rows."""

    what: str
    architecture: str
    shape: str
    # d_head_qk and d_head_vo of a split; what is frozen; or nothing
    option: Any
    number: int
    rate: float
    epochs: int

    @property
    def config(self) -> AnyConfig:
        """The decoder."""
        if self.what != "splits":
            return decoder_of(self.architecture, self.shape)
        d_model, d_head_qk, d_head_vo = self.option
        sizes = {"d_model": d_model, "n_heads": 2, "d_head_qk": d_head_qk, "d_head_vo": d_head_vo}
        options = ARCHITECTURES[self.architecture](d_model)
        return DecoderConfig(**sizes, **options) if options else LayerConfig(**sizes)

    def trained(
        self, size: int, until: Until, frozen: tuple[str, ...] = ()
    ) -> tuple[dict[str, Any], Any]:
        """The row and the layer of some starts."""
        recipe = Recipe(
            **{**BEST, "learning_rate": self.rate, "epochs": self.epochs}, frozen=frozen
        )
        name = f"decoders-{size}-{self.number}"
        database = database_of(size, self.number)
        return trained_without_search(
            Run(name, database, self.config, SEED + self.number, recipe,
                starts=Starts(STARTS, until))
        )  # fmt: skip


def run(smoke: bool) -> Tables:
    """Tables of splits, of logits and of frozen weights."""
    rates = rates_of(committed("decoders", "tuning"))["best"]
    names = (PLAIN_LAYER, WITH_MLP[0]) if smoke else ASKED
    shapes = list(SHAPES)[:1] if smoke else list(SHAPES)
    count, epochs = (1, 60) if smoke else (DATABASES, 2000)
    splits = [(d, *split) for d, both in SPLITS.items() for split in both]
    asked: list[tuple[str, str, str, Any]] = [
        *(("splits", name, "", split) for name in names for split in splits),
        *(("logits", name, shape, None) for name in names for shape in shapes),
        *(
            ("frozen", name, shape, group)
            for name in names
            for shape in shapes
            for group in GROUPS
            if name in (PLAIN_LAYER, *WITH_MLP) and not (group == "MLP" and name == PLAIN_LAYER)
        ),
    ]
    tasks = [
        Task(what, name, shape, option, number, rates[name], epochs)
        for what, name, shape, option in asked
        for number in range(count)
    ]
    with bar() as tell:
        found = rows_of("decoder_findings", rows_of_task, tasks, tell, in_process=smoke)
    tables: Tables = {}
    for what in ("splits", "logits", "frozen"):
        rows = [
            row
            for task, each in zip(tasks, found, strict=True)
            if task.what == what
            for row in each["rows"]
        ]
        tables[what] = pd.DataFrame(rows)
    seconds = sum(each["cpu_seconds"] for each in found)
    return {**tables, "costs": pd.DataFrame({"tasks": [len(tasks)], "cpu_seconds": [seconds]})}


def rows_of_task(task: Task) -> dict[str, Any]:
    """All rows of a task, and the time that the processor took."""
    start = time.process_time()
    measured = {"splits": _split, "logits": _logits, "frozen": _frozen}[task.what]
    named = {"architecture": task.architecture, "layer_id": task.shape,
             "database_id": f"{task.number}"}  # fmt: skip
    rows = [{**named, **row} for row in measured(task)]
    return {"rows": rows, "cpu_seconds": time.process_time() - start}


def _split(task: Task) -> list[dict[str, Any]]:
    """A row for each size of a bisection."""
    d_model, d_head_qk, d_head_vo = task.option
    rows: list[dict[str, Any]] = []

    def share_at(size: int) -> float:
        held = bool(task.trained(size, "held")[0]["held_by_any"])
        rows.append(
            {"layer_id": f"d{d_model}", "d_head_qk": d_head_qk, "d_head_vo": d_head_vo,
             "size": size, "held_by_any": held}
        )  # fmt: skip
        return float(held)

    half_size(share_at, SIZES)
    return rows


def _logits(task: Task) -> list[dict[str, Any]]:
    """Measure the predictions of the best start after all pairs of a subject and a predicate."""
    size = size_for(parameters_of(task.config, "total"), DENSITY)
    row, layer = task.trained(size, "held")
    db = database_of(size, task.number)
    logits = logit_tensor(layer, db)
    additive = additive_part(logits)
    estimate = numerical_rank_estimates(logits)
    found: dict[str, Any] = {
        "size": size, "held": row["held_by_any"],
        "recalled": _recalled(logits, db), "recalled_by_sum": _recalled(additive, db),
        "additive_share": share_of_variation(additive, logits),
        "logits_rank_from_below": estimate.unfolding_rank,
        "logits_rank_from_above": estimate.decomposition_size,
    }  # fmt: skip
    thresholds: dict[str, Threshold] = {"argmax": "argmax", "tau": TAU}
    for name, threshold in thresholds.items():
        decoded = decoded_facts(layer, db, threshold, nonsense=True)
        ends = (0, 0)
        if decoded is not None:
            interval = rank_interval(decoded, effort="quick")
            ends = (interval.lower, interval.upper)
        found |= {f"{name}_rank_lower": ends[0], f"{name}_rank_upper": ends[1]}
    return [found]


def additive_part(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum of a term of the subject and one of the predicate that is nearest to the logits."""
    of_pairs = logits.mean(0, keepdims=True) + logits.mean(1, keepdims=True)
    return of_pairs - logits.mean((0, 1), keepdims=True)


def _recalled(logits: NDArray[np.float64], db: Database) -> float:
    """Share of the facts whose object has the largest logit of all objects."""
    k, q, v = db.triples.T
    return float((logits[k, q].argmax(1) == v).mean())


def share_of_variation(part: NDArray[np.float64], whole: NDArray[np.float64]) -> float:
    """Share of the variation of logits within objects' differences that a part explains."""
    part, whole = (each - each.mean(2, keepdims=True) for each in (part, whole))
    mean = whole.mean((0, 1), keepdims=True)
    return float(1 - np.square(whole - part).sum() / np.square(whole - mean).sum())


def _frozen(task: Task) -> list[dict[str, Any]]:
    """Measure the recall of a decoder some of whose weights stay as they were drawn."""
    size = size_for(parameters_of(task.config, "total"), DENSE)
    row, _ = task.trained(size, "all", GROUPS[task.option])
    kept = ("accuracy_argmax", "accuracy_p95", "held_by_any", "share_of_starts", "starts_tried")
    return [{"frozen": task.option, "size": size, **{name: row[name] for name in kept}}]


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Draw the cost of freezing, by group of weights and architecture."""
    figure = Figure(figsize=(WIDTH, 3.6))
    axes = figure.subplots()
    groups = [group for group in GROUPS if group != "nothing"]
    names = [name for name in found["frozen"] if name != "with an MLP"]
    for number, name in enumerate(names):
        costs = found["frozen"][name]
        asked = [group for group in groups if group in costs]
        places = [groups.index(group) + 0.12 * (number - 1) for group in asked]
        estimates(axes, places, [costs[group] for group in asked], colour=COLOURS[number],
                  marker=MARKERS[number], label=name)  # fmt: skip
    axes.axhline(0, color=REFERENCE, linewidth=0.8, linestyle=":")
    axes.set_xticks(range(len(groups)), groups)
    axes.set(xlabel="left as drawn", ylabel=f"facts recalled less at tau = {TAU}")
    axes.legend()
    less = found["frozen"]["with an MLP"]["MLP less attention"]
    headline(figure, "With an MLP, freezing the MLP costs "
             f"{less['mean']:+.2f} of the facts beside freezing attention")  # fmt: skip
    return {"frozen": figure}


if __name__ == "__main__":
    main("decoder_findings", run, numbers, plot)
