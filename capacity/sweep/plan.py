"""The runs of a sweep, their keys, and the shards they are stored in. No torch in here.

A run is one (database, layer, seed, recipe), from one random start or several, and how it is
computed. Its key is the SHA-256 of
everything that determines its result; the device, the number of workers and the other runs of the
sweep are not part of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from typing import Any

from capacity.database.facts import Database
from capacity.database.given_facts import require_triples
from capacity.display import briefly_shown
from capacity.errors import SweepError
from capacity.evaluator.accuracy import TAUS
from capacity.layer.decoder.config import DecoderConfig
from capacity.layer.engines.engine import Workload
from capacity.layer.engines.registry import Compute, Device, engine_for, engine_named
from capacity.layer.model.config import AnyConfig, LayerConfig
from capacity.layer.run.recipe import ONE_START, Recipe, Starts

# parts of every key: raise them when the columns, or the results that the code computes, change
SCHEMA_VERSION = 4
ALGORITHM_VERSION = 8
# target duration of a shard, which is one file, and of a task, which one process does
SHARD_SECONDS = 10.0
TASK_SECONDS = 1.0
# of a short sweep each process does at least as many tasks: all end at about the same time
TASKS_A_WORKER = 10
# measured: to draw a layer's weights, score it, and write its row
RUN_SECONDS = 2e-3
# measured: to score it, per logit at the facts
LOGIT_SECONDS = 1e-7


@briefly_shown
@dataclass(frozen=True)
class Run:
    """One layer to train on one database.

    Attributes
    ----------
    database_id : str
        Name of the database in the table.
    database : Database
        Facts to store.
    layer : LayerConfig or DecoderConfig
        Sizes and options of the layer, or decoder.
    seed : int
        Seed of the initial weights and the order of facts.
    recipe : Recipe
        Hyperparameters of training.
    compute : Compute
        Engine, dtype and device. Engine and dtype are part of the key; the device is not, though
        it can decide which engine 'auto' means.
    variant : str
        Empty, or a hash that distinguishes the run from the same run by another engine, dtype or
        version.
    taus : tuple of float
        Thresholds at which the layer is scored, in rising order; always includes the default ones,
        and that at which it must hold the database.
    starts : Starts
        Random starts from which the layer is trained, all drawn from the one seed.

    Raises
    ------
    InvalidArgumentError
        If the facts have another arity than 3.
    """

    database_id: str
    database: Database
    # one or the other in all runs of a plan, as who reads them knows
    layer: Any
    seed: int
    recipe: Recipe
    compute: Compute = field(default_factory=Compute)
    variant: str = ""
    taus: tuple[float, ...] = TAUS
    starts: Starts = ONE_START

    def __post_init__(self) -> None:
        database = require_triples(self.database, "A run of a sweep")
        object.__setattr__(self, "database", database)
        held_at = self.starts.held_at
        # the column of 0.5 is always there
        more = () if isinstance(held_at, str) or held_at == 0.5 else (held_at,)
        object.__setattr__(self, "taus", tuple(sorted({*TAUS, *self.taus, *more})))

    @cached_property
    def engine(self) -> str:
        """Engine that trains the run, with 'auto' resolved."""
        return engine_for(self.compute.engine, self.workload).name

    @property
    def workload(self) -> Workload:
        """Sizes of the training, by which an engine is chosen and its cost estimated."""
        db = self.database
        return Workload(
            self.layer, self.recipe, db.n_triples, db.n_tokens, self.compute.dtype, self.device
        )

    @property
    def is_grouped(self) -> bool:
        """Return True if its engine trains it together with other runs."""
        return engine_named(self.engine).run_many is not None

    @property
    def device(self) -> str:
        """Device that trains the run; 'auto' means the CPU."""
        return "cpu" if self.compute.device == "auto" else self.compute.device

    @cached_property
    def key(self) -> str:
        """SHA-256 of everything that determines the run's result."""
        return _digest(
            {
                "question": self.question,
                "schema": SCHEMA_VERSION,
                "algorithm": ALGORITHM_VERSION,
                "engine": self.engine,
                "dtype": self.compute.dtype,
                **({"variant": self.variant} if self.variant else {}),
            }
        )

    @cached_property
    def question(self) -> str:
        """SHA-256 of database, layer, seed, recipe, starts and thresholds, without the engine."""
        # what has its default is omitted, so that a question keeps its digest when keys are added
        scored = {"taus": self.taus} if self.taus != TAUS else {}
        tried = {"starts": asdict(self.starts)} if self.starts != ONE_START else {}
        asked = _as_dict(self.recipe)
        recipe = asked if self.recipe.frozen else {k: v for k, v in asked.items() if k != "frozen"}
        return _digest({"start": self.draw, "recipe": recipe, **scored, **tried})

    @cached_property
    def draw(self) -> str:
        """SHA-256 that seeds the generators of all starts.

        Recipes are compared from the same weights, and the first start of several is that of one.
        """
        return _digest(
            {
                "database_id": self.database_id,
                "facts": self.database.facts_sha256,
                "layer": _as_dict(self.layer),
                "seed": self.seed,
            }
        )

    @property
    def seconds(self) -> float:
        """Estimated seconds on one core (as of 2025) if no training stops early.

        Training (`Engine.cost`) and scoring, most of which is the search for the smallest scales,
        from all starts that there may be.
        """
        work = self.workload
        scoring = RUN_SECONDS + LOGIT_SECONDS * work.n_logits
        return self.starts.most * (engine_named(self.engine).cost(work) + scoring)


@briefly_shown
@dataclass(frozen=True)
class Plan:
    """The runs of a sweep, in shards.

    Attributes
    ----------
    runs : tuple of Run
        Runs, in order.
    config : mapping
        Configuration as it was read, recorded in the manifest.
    sources : mapping of str to str
        SHA-256 of each file that facts were read from, by its path.
    """

    runs: tuple[Run, ...]
    config: Mapping[str, Any]
    sources: Mapping[str, str] = field(default_factory=dict[str, str])

    @cached_property
    def shards(self) -> tuple[tuple[Run, ...], ...]:
        """Runs grouped into shards, the units that are stored; numbered from 0."""
        return tuple(_cut(self.runs, SHARD_SECONDS))

    @cached_property
    def key(self) -> str:
        """SHA-256 of the keys of all runs, in order."""
        return shard_key(self.runs)

    @cached_property
    def question(self) -> str:
        """SHA-256 of the questions of all runs, in order."""
        return _digest([run.question for run in self.runs])

    @property
    def kind_of_layers(self) -> type[LayerConfig] | type[DecoderConfig]:
        """Class of the configurations of all layers."""
        return type(self.runs[0].layer) if self.runs else LayerConfig

    @cached_property
    def taus(self) -> tuple[float, ...]:
        """Thresholds at which all runs are scored; each has its columns in the table.

        Raises
        ------
        SweepError
            If they differ between runs.
        """
        first, *others = {run.taus for run in self.runs}
        if others:
            raise SweepError(
                f"The runs of a plan must be scored at the same `taus`; some have {first}, others "
                f"{others[0]}. Make one plan for each."
            )
        return first

    @cached_property
    def databases(self) -> dict[str, Database]:
        """Databases of the plan, each once, by the SHA-256 of its facts."""
        return {run.database.facts_sha256: run.database for run in self.runs}

    def on(self, device: Device) -> Plan:
        """Return the plan with all runs on a device."""
        runs = (replace(run, compute=replace(run.compute, device=device)) for run in self.runs)
        return replace(self, runs=tuple(runs))

    def under(self, variant: str) -> Plan:
        """Return the plan with all runs as a variant, which changes their keys."""
        return replace(self, runs=tuple(replace(run, variant=variant) for run in self.runs))


def shard_key(runs: Iterable[Run]) -> str:
    """SHA-256 of the keys of some runs, in order."""
    return _digest([run.key for run in runs])


def task_seconds(runs: Iterable[Run], *, workers: int) -> float:
    """Target duration of the tasks of some runs, for a number of processes; at most a second."""
    if workers == 1:
        return TASK_SECONDS
    return min(TASK_SECONDS, sum(run.seconds for run in runs) / (TASKS_A_WORKER * workers))


def tasks_of(runs: Iterable[Run], seconds: float = TASK_SECONDS) -> Iterator[tuple[Run, ...]]:
    """Cut the runs of a shard into tasks of a given number of seconds each.

    A run is never cut, and runs that are trained together are one task.
    """
    runs = tuple(runs)
    together = tuple(run for run in runs if run.is_grouped)
    if together:
        yield together
    yield from _cut((run for run in runs if not run.is_grouped), seconds)


def _cut(runs: Iterable[Run], most: float) -> Iterator[tuple[Run, ...]]:
    """Cut runs into pieces of at most `most` seconds; a longer run is a piece by itself.

    A piece of runs that are trained together takes more, until it fills a device (`Engine.fills`).
    """
    piece: list[Run] = []
    seconds, together = 0.0, 0
    for run in runs:
        is_room = run.is_grouped and 0 < together < engine_named(run.engine).fills
        if piece and seconds + run.seconds > most and not is_room:
            yield tuple(piece)
            piece, seconds, together = [], 0.0, 0
        piece.append(run)
        seconds += run.seconds
        together += run.is_grouped
    if piece:
        yield tuple(piece)


@cache
def _as_dict(part: Recipe | AnyConfig) -> dict[str, Any]:
    return part.to_dict()


def _digest(data: Any) -> str:
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
