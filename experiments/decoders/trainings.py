"""Trainings of decoders and plain layers: learning rates, bisections and shares of starts."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pandas as pd

from capacity import Recipe
from capacity.evaluator import half_size
from capacity.layer import Starts
from capacity.progress import bar
from capacity.sweep import Run
from experiments.common.bisections import row_without_search
from experiments.common.harness import BEST, PLAIN, Tables, rows_of
from experiments.decoders.cells import (
    ARCHITECTURES,
    MLP_ALONE,
    PLAIN_LAYER,
    SHAPES,
    SIZES,
    AnyConfig,
    Budget,
    database_of,
    decoder_of,
    parameters_of,
    plain_equal,
    size_for,
)

RECIPES = {"best": BEST, "plain": PLAIN}
RATES = {"best": (0.01, 0.03, 0.1), "plain": (0.001, 0.003, 0.01)}
DATABASES, STARTS, RELIABILITY_STARTS, TUNING, TUNING_STARTS = 6, 4, 4, 2, 2
# facts per parameter, embeddings included
DENSITIES = (0.08, 0.12)
# number of the first database that learning rates are chosen on
FIRST_OF_TUNING = 1000
BUDGETS: tuple[Budget, ...] = ("total", "non-embedding")
QUERY_KEY = ("W_Q", "W_K")
# architectures that are trained with W_Q and W_K frozen, too
FROZEN = (PLAIN_LAYER, "layer norm", "MLP of 4 d_model", "all")
# architectures whose reach is compared at equal parameters without embeddings, too; plain layers
# are larger then, and take most of the time
WITHOUT_EMBEDDINGS = ("MLP of d_model", "MLP of 2 d_model", "MLP of 4 d_model", "all", "two layers")
# architectures that are trained by the plain recipe, too
BY_BOTH = ("plain", "layer norm", "biases", "MLP of d_model", "MLP of 2 d_model",
           "MLP of 4 d_model", "all", "two layers", "two layers, MLPs")  # fmt: skip
# so that learning rates, reach and reliability have starts of their own
SEEDS = {"sizes": 0, "starts": 500, "tuning": 0}
KEPT = ("status", "epochs", "accuracy_argmax", "accuracy_p95", "starts_tried", "held_by_any",
        "share_of_starts")  # fmt: skip
ROW = ["kind", "layer_id", "frozen", "rate", "database_id", "size"]


@dataclass(frozen=True)
class Task:
    """Trainings of one decoder on databases of one number; its text is the key of its rows.

    Attributes
    ----------
    what : {'tuning', 'sizes', 'starts'}
        What is asked.
    kind : {'best', 'plain'}
        Recipe.
    architecture, shape : str
        The decoder.
    equal : {'total', 'non-embedding'} or None
        Train the plain layer of as many parameters instead.
    frozen : bool
        Leave W_Q and W_K as they were drawn.
    rate : float
        Learning rate.
    number : int
        Number of the databases.
    epochs : int
        Largest number of epochs.
    """

    what: str
    kind: str
    architecture: str
    shape: str
    equal: Budget | None
    frozen: bool
    rate: float
    number: int
    epochs: int

    @property
    def config(self) -> AnyConfig | None:
        """The decoder, or the plain layer, if there is one."""
        if self.equal is None:
            return decoder_of(self.architecture, self.shape)
        return plain_equal(self.architecture, self.shape, self.equal)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes that are asked for; those of a bisection follow from one another."""
        return () if self.what == "sizes" else asked_sizes(self.architecture, self.shape)

    def row_of(self, size: int, starts: Starts) -> dict[str, Any]:
        """Train on a database of a size, from some starts."""
        recipe = Recipe(
            **{**RECIPES[self.kind], "learning_rate": self.rate, "epochs": self.epochs},
            frozen=QUERY_KEY if self.frozen else (),
        )
        config = self.config
        if config is None:
            raise ValueError(f"There is no plain layer for {self}.")
        run = Run(
            f"decoders-{size}-{self.number}", database_of(size, self.number), config,
            self.number + SEEDS[self.what], recipe, starts=starts,
        )  # fmt: skip
        row = row_without_search(run)
        named = {"kind": self.kind, "layer_id": row["layer_id"], "frozen": self.frozen,
                 "rate": self.rate, "database_id": f"{self.number}", "size": size}  # fmt: skip
        return {**named, **{key: row[key] for key in KEPT}}


def trained(smoke: bool) -> Tables:
    """Tables of learning rates, bisections, starts at given sizes, and processor time."""
    shapes = list(SHAPES)[:1] if smoke else list(SHAPES)
    names = [PLAIN_LAYER, "layer norm", "MLP of d_model", "biases"] if smoke else [*ARCHITECTURES]
    epochs = 60 if smoke else 2000
    tuning = [
        Task("tuning", kind, name, shape, None, False, rate, number, epochs)
        for kind, rates in RATES.items()
        for name, shape, rate in product(names, shapes, rates)
        if name != MLP_ALONE and (kind == "best" or name in BY_BOTH)
        for number in range(FIRST_OF_TUNING, FIRST_OF_TUNING + (1 if smoke else TUNING))
    ]
    tables = _rows_of("tuning", tuning, smoke)
    rates = rates_of(tables["tuning"])
    tasks: dict[tuple[Any, ...], Task] = {}
    for what in ("sizes", "starts"):
        for task in _tasks(what, names, shapes, rates, epochs, 1 if smoke else DATABASES):
            # a plain layer may equal several decoders
            of = (what, task.config, task.kind, task.frozen, task.number, task.sizes)
            tasks.setdefault(of, task)
    more = _rows_of("sizes", list(tasks.values()), smoke)
    costs = pd.concat([tables["costs"], more["costs"]], ignore_index=True)
    return {**tables, **more, "costs": costs}


def _tasks(
    what: str,
    names: Sequence[str],
    shapes: Sequence[str],
    rates: dict[str, dict[str, float]],
    epochs: int,
    databases: int,
) -> Iterator[Task]:
    """Yield the tasks of each decoder, of those with W_Q and W_K frozen, and of plain layers."""
    for kind, name, shape in product(RECIPES, names, shapes):
        is_both = what == "sizes" and kind == "best" and name in WITHOUT_EMBEDDINGS
        budgets = BUDGETS if is_both else BUDGETS[:1]
        if kind == "plain" and name not in BY_BOTH:
            continue
        own = rates[kind].get(name, rates[kind][PLAIN_LAYER])
        ways: list[tuple[Budget | None, bool, float]] = [(None, False, own)]
        if name in FROZEN:
            ways.append((None, True, own))
        of_plain = rates[kind][PLAIN_LAYER]
        if name != MLP_ALONE:
            ways.extend((budget, False, of_plain) for budget in budgets)
        for (equal, frozen, rate), number in product(ways, range(databases)):
            task = Task(what, kind, name, shape, equal, frozen, rate, number, epochs)
            if task.config is not None:
                yield task


def asked_sizes(architecture: str, shape: str) -> tuple[int, ...]:
    """Sizes at which the starts of an architecture and of its plain layer are counted."""
    count = parameters_of(decoder_of(architecture, shape), "total")
    return tuple(size_for(count, density) for density in DENSITIES)


def _rows_of(name: str, tasks: Sequence[Task], smoke: bool) -> Tables:
    """Rows of tasks, each once, by what is asked, and the time that processors took."""
    with bar() as tell:
        found = rows_of(
            f"decoders-{name}", rows_of_task, tasks, tell, in_process=smoke, cost=_cost_of
        )
    tables: Tables = {}
    for what in dict.fromkeys(task.what for task in tasks):
        rows = pd.DataFrame(
            [
                row
                for task, each in zip(tasks, found, strict=True)
                if task.what == what
                for row in each["rows"]
            ]
        )
        # a plain layer may be asked for one size beside two decoders
        tables[what] = rows.drop_duplicates(ROW).sort_values(ROW, ignore_index=True)
    seconds = sum(each["cpu_seconds"] for each in found)
    costs = {"stage": [name], "tasks": [len(tasks)], "cpu_seconds": [seconds]}
    return {**tables, "costs": pd.DataFrame(costs)}


def rows_of_task(task: Task) -> dict[str, Any]:
    """All rows of a task, and the time that the processor took."""
    start = time.process_time()
    if task.what == "sizes":
        rows = _bisected(task)
    else:
        starts = Starts(TUNING_STARTS if task.what == "tuning" else RELIABILITY_STARTS)
        rows = [task.row_of(size, starts) for size in task.sizes]
    if task.what == "tuning":
        rows = [{"architecture": task.architecture, **row} for row in rows]
    return {"rows": rows, "cpu_seconds": time.process_time() - start}


def _bisected(task: Task) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []

    def share_at(size: int) -> float:
        rows.append(task.row_of(size, Starts(STARTS, "held")))
        return float(rows[-1]["held_by_any"])

    half_size(share_at, SIZES)
    return rows


def _cost_of(task: Task) -> float:
    """Rough cost, which grows with parameters; databases come in their order, to be whole early."""
    config = task.config
    of_layer = 0.0 if config is None else float(parameters_of(config, "total") ** 2)
    return of_layer - 1e9 * task.number


def rates_of(tuning: pd.DataFrame) -> dict[str, dict[str, float]]:
    """The learning rate of each recipe and architecture: of equal ones the smallest."""
    by = ["kind", "architecture", "rate"]
    scored = tuning.assign(score=tuning["share_of_starts"] + tuning["accuracy_p95"].fillna(0.0))
    means = scored.groupby(by)["score"].mean().reset_index()
    first = means.sort_values(["score", "rate"], ascending=[False, True]).groupby(by[:2]).first()
    found: dict[str, dict[str, float]] = {kind: {} for kind in RECIPES}
    for (kind, name), rate in first["rate"].items():  # pyright: ignore[reportGeneralTypeIssues]
        found[kind][name] = rate
    return found
