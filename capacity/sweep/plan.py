"""The runs of a sweep, their keys, and the shards they are stored in. No torch in here.

A run is one (database, layer, seed, recipe) and how it is computed. Its key is the SHA-256 of all
that determines its result; device, workers and what else is in the sweep stay out of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

from capacity.database.facts import Database
from capacity.display import briefly_shown
from capacity.errors import SweepError
from capacity.evaluator.accuracy import TAUS
from capacity.layer.compute import Compute, Device
from capacity.layer.config import LayerConfig
from capacity.layer.engines.registry import engine_for, engine_named
from capacity.layer.engines.workload import Workload
from capacity.layer.recipe import Recipe

# parts of every key: raise them when the columns, or what the code makes of a run, change
SCHEMA_VERSION = 3
ALGORITHM_VERSION = 7
# of a shard, which is one file, and of a task, after which a kill loses nothing of it
SHARD_SECONDS = 10.0
TASK_SECONDS = 1.0
# to draw a layer's weights, score it, and write its row, as measured
RUN_SECONDS = 2e-3
# to score it, for each of the logits at the facts
LOGIT_SECONDS = 1e-7


@briefly_shown
@dataclass(frozen=True)
class Run:
    """One layer to train on one database.

    Attributes
    ----------
    database_id : str
    database : Database
    layer : LayerConfig
    seed : int
    recipe : Recipe
    compute : Compute
        How it is trained. The engine and the dtype are part of its key; the device isn't, but for
        the engine that 'auto' stands for there.
    variant : str
        Empty, or a hash of what sets it apart from the same run: another engine, other versions.
    taus : tuple of float
        Thresholds that its layer is scored at, in rising order; the usual ones are always there.
    """

    database_id: str
    database: Database
    layer: LayerConfig
    seed: int
    recipe: Recipe
    compute: Compute = field(default_factory=Compute)
    variant: str = ""
    taus: tuple[float, ...] = TAUS

    def __post_init__(self) -> None:
        object.__setattr__(self, "taus", tuple(sorted({*TAUS, *self.taus})))

    @cached_property
    def engine(self) -> str:
        """The engine that trains it, with 'auto' resolved."""
        return engine_for(self.compute.engine, self.workload).name

    @property
    def workload(self) -> Workload:
        """The training as its engine sees it beforehand."""
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
        """The device that it is trained on: the CPU where none was chosen."""
        return "cpu" if self.compute.device == "auto" else self.compute.device

    @cached_property
    def key(self) -> str:
        """SHA-256 of all that determines the run's result."""
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
        """SHA-256 of what the run is about, whatever computes it."""
        scored = {"taus": self.taus} if self.taus != TAUS else {}
        return _digest({"start": self.start, "recipe": _as_dict(self.recipe), **scored})

    @cached_property
    def start(self) -> str:
        """SHA-256 of what its generators start from: recipes are compared from the same weights."""
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
        """About how long it takes on a core of 2025 if it doesn't stop early.

        Training (`Engine.cost`), and scoring, of which the smallest scales take most.
        """
        work = self.workload
        scoring = RUN_SECONDS + LOGIT_SECONDS * work.n_logits
        return engine_named(self.engine).cost(work) + scoring


@briefly_shown
@dataclass(frozen=True)
class Plan:
    """The runs of a sweep, in shards.

    Attributes
    ----------
    runs : tuple of Run
    config : mapping
        The configuration as it was read, for the manifest.
    sources : mapping of str to str
        SHA-256 of each file that facts were read from.
    """

    runs: tuple[Run, ...]
    config: Mapping[str, Any]
    sources: Mapping[str, str] = field(default_factory=dict[str, str])

    @cached_property
    def shards(self) -> tuple[tuple[Run, ...], ...]:
        """The runs cut into the units that are stored, numbered from 0."""
        return tuple(_cut(self.runs, SHARD_SECONDS))

    @cached_property
    def key(self) -> str:
        """SHA-256 of the keys of all runs, in order."""
        return shard_key(self.runs)

    @cached_property
    def question(self) -> str:
        """SHA-256 of what all runs are about, whatever computes them."""
        return _digest([run.question for run in self.runs])

    @cached_property
    def taus(self) -> tuple[float, ...]:
        """The thresholds that all runs are scored at; each has its columns in the table.

        Raises
        ------
        SweepError
            If they differ from run to run.
        """
        first, *others = {run.taus for run in self.runs}
        if others:
            raise SweepError(
                f"The runs of a plan must be scored at the same `taus`; some have {first}, others "
                f"{others[0]}."
            )
        return first

    @cached_property
    def databases(self) -> dict[str, Database]:
        """Each database once, by the SHA-256 of its facts."""
        return {run.database.facts_sha256: run.database for run in self.runs}

    def on(self, device: Device) -> Plan:
        """The same runs by the engines for a device."""
        runs = (replace(run, compute=replace(run.compute, device=device)) for run in self.runs)
        return replace(self, runs=tuple(runs))

    def under(self, variant: str) -> Plan:
        """The same runs under other keys."""
        return replace(self, runs=tuple(replace(run, variant=variant) for run in self.runs))


def shard_key(runs: Iterable[Run]) -> str:
    """SHA-256 of the keys of some runs, in order."""
    return _digest([run.key for run in runs])


def tasks_of(runs: Iterable[Run]) -> Iterator[tuple[Run, ...]]:
    """Cut runs of a shard into tasks of about a second; a run isn't cut.

    Those that are trained together are one task.
    """
    runs = tuple(runs)
    together = tuple(run for run in runs if run.is_grouped)
    if together:
        yield together
    yield from _cut((run for run in runs if not run.is_grouped), TASK_SECONDS)


def _cut(runs: Iterable[Run], most: float) -> Iterator[tuple[Run, ...]]:
    """Cut runs into pieces of at most so many seconds, or of one run."""
    piece: list[Run] = []
    seconds = 0.0
    for run in runs:
        if piece and seconds + run.seconds > most:
            yield tuple(piece)
            piece, seconds = [], 0.0
        piece.append(run)
        seconds += run.seconds
    if piece:
        yield tuple(piece)


@cache
def _as_dict(part: Recipe | LayerConfig) -> dict[str, Any]:
    return part.to_dict()


def _digest(data: Any) -> str:
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
