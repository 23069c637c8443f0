"""The proof of an engine on a device: small runs that it trains there as `reference` on a CPU.

What is tested on one machine can fail on another: compilers, drivers and chips differ, and a kernel
that is wrong there is wrong silently. So an engine trains nothing on a device before it has trained
16 small runs as the reference engine does, within the rounding of its sums.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np
import torch

from capacity.database.facts import Database
from capacity.database.made.synthetic import random_database
from capacity.errors import DeviceError
from capacity.layer.engines.engine import Engine, Pair, Workload, loaded
from capacity.layer.engines.registry import engine_named, engine_names
from capacity.layer.model.attention_layer import AttentionLayer
from capacity.layer.model.config import LayerConfig
from capacity.layer.packed import train_together
from capacity.layer.run.recipe import Recipe, Training
from capacity.layer.run.snapshots import NO_SNAPSHOTS

# the largest difference of a weight or a loss; sums in another order give a hundredth of it
MOST = {"float32": 1e-4, "float64": 1e-8}
# short, since training magnifies rounding
EPOCHS = 20
# both optimizers, schedules and losses, on half of the runs each
RECIPES = (
    Recipe(epochs=EPOCHS, learning_rate=0.01),
    Recipe(
        epochs=EPOCHS,
        learning_rate=0.01,
        optimizer="adamw",
        weight_decay=0.1,
        schedule="cosine",
        beta2=0.9,
        positions="object",
        stop_tau=0.9,
    ),
)
RUNS = 16
# for the speed: runs that are trained together, and their epochs
MANY, LONG = 512, 200


@dataclass(frozen=True)
class Proof:
    """Difference of the small runs of an engine on a device from those of the reference.

    Attributes
    ----------
    engine, device, dtype : str
        Name of the engine, kind of device and type of weights.
    runs : int
        Number of runs that were compared.
    difference : float
        Largest difference of a weight or a loss from those of `reference` on the CPU; infinite
        where one isn't a number, or where the numbers of epochs differ.
    most : float
        The difference that rounding may make.
    """

    engine: str
    device: str
    dtype: str
    runs: int
    difference: float
    most: float

    @property
    def holds(self) -> bool:
        """Return True if the engine computes what the reference does."""
        return self.difference <= self.most

    def to_dict(self) -> dict[str, Any]:
        """Return the proof for JSON; a difference that isn't finite is None."""
        finite = self.difference if math.isfinite(self.difference) else None
        return {**asdict(self), "difference": finite, "holds": self.holds}


@cache
def prove(engine: str, device: str, dtype: str = "float32") -> Proof:
    """Train small runs on a device and by `reference` on the CPU, once in a process.

    Parameters
    ----------
    engine : str
        Name of an engine.
    device : str
        Device that torch knows.
    dtype : {'float32', 'float64'}
        Type of the weights.

    Examples
    --------
    >>> proof = prove("blocked", "cpu", "float64")
    >>> proof.runs, proof.holds
    (16, True)
    """
    difference = 0.0
    for recipe, tasks in zip(RECIPES, (small_runs(0), small_runs(1)), strict=True):
        there = [(deepcopy(layer).to(device), db) for layer, db in _in(dtype, tasks)]
        here = _in(dtype, tasks)
        found = _trained(engine_named(engine), there, recipe)
        wanted = _trained(engine_named("reference"), here, recipe)
        pairs = zip(there, here, found, wanted, strict=True)
        difference = max(difference, *(_difference(*pair) for pair in pairs))
    return Proof(engine, torch.device(device).type, dtype, RUNS, difference, MOST[dtype])


def require_proven(engine: str, device: torch.device, dtype: str) -> None:
    """Refuse an engine that computes something else on a device than `reference` on the CPU.

    Raises
    ------
    DeviceError
        With the numbers.
    """
    if device.type == "cpu":
        return
    proof = prove(engine, str(device), dtype)
    if not proof.holds:
        raise DeviceError(
            f"`device` must compute what the CPU does; on {device}, {engine} differs from "
            f"reference by {proof.difference:.2g} in a weight or a loss after {EPOCHS} epochs of "
            f"{RUNS} small runs, and rounding makes at most {proof.most:g}. Train on the CPU, or "
            "try another version of the driver, of torch or of triton; `capacity doctor --device "
            f"{device.type}` shows all engines."
        )


def proofs(device: str) -> Iterator[tuple[Proof, float]]:
    """Prove each engine that can train on a device, and measure its runs a second.

    Parameters
    ----------
    device : str
        Device that torch knows.

    Yields
    ------
    Proof
        The small runs.
    float
        Runs of 2,000 epochs a second, of layers and databases like these, trained together if the
        engine can do that; NaN if the proof doesn't hold.
    """
    (layer, db), *_ = small_runs(0)
    for name in engine_names():
        work = Workload(
            layer.config, RECIPES[0], db.n_triples, db.n_tokens, device=torch.device(device).type
        )
        if engine_named(name).why_not(work) is None:
            proof = prove(name, device)
            yield proof, runs_a_second(name, device) if proof.holds else math.nan


def runs_a_second(engine: str, device: str) -> float:
    """Runs of 2,000 epochs that an engine trains in a second, after a first one."""
    found = engine_named(engine)
    many, recipe = 1 if found.run_many is None else MANY, Recipe(epochs=LONG, stop_tau=0.0)
    tasks = small_runs(0)
    repeated = [tasks[i % len(tasks)] for i in range(many)]
    timed = [(deepcopy(layer).to(device), db) for layer, db in repeated]
    _trained(found, [(deepcopy(layer), db) for layer, db in timed], Recipe(epochs=1))
    start = time.perf_counter()
    _trained(found, timed, recipe)
    return many * LONG / 2000 / (time.perf_counter() - start)


@cache
def small_runs(part: int) -> list[Pair]:
    """Layers and databases of half of the small runs, the last of which is long."""
    rng = np.random.default_rng(part)
    tasks: list[Pair] = []
    for seed in range(part * RUNS // 2, (part + 1) * RUNS // 2 - 1):
        d_model = int(rng.integers(2, 7))
        heads, qk, vo = (int(rng.integers(1, most + 1)) for most in (4, d_model, d_model))
        config = LayerConfig(d_model, heads, qk, vo)
        db = random_database(seed, triples=(4, 60))
        tasks.append((AttentionLayer(config, db.n_tokens, seed=seed), db))
    # more facts of one predicate, and more heads, than kernels hold at a time
    long = Database.from_triples((f"k{i}", "q", f"v{i % 7}") for i in range(70))
    return [*tasks, (AttentionLayer(LayerConfig(2, 5, 1, 2), long.n_tokens, seed=part), long)]


def _in(dtype: str, tasks: Sequence[Pair]) -> list[Pair]:
    return [(deepcopy(layer).to(getattr(torch, dtype)), db) for layer, db in tasks]


def _trained(engine: Engine, tasks: Sequence[Pair], recipe: Recipe) -> list[Training]:
    rngs = [np.random.default_rng(0) for _ in tasks]
    if engine.run_many is not None:
        return train_together(loaded(engine.run_many), tasks, recipe, rngs)
    run = loaded(engine.run)
    return [run(*task, recipe, rng, NO_SNAPSHOTS) for task, rng in zip(tasks, rngs, strict=True)]


def _difference(
    there: Pair,
    here: Pair,
    found: Training,
    wanted: Training,
) -> float:
    """Largest difference of a weight, or of a loss in the history."""
    if (found.status, found.epochs) != (wanted.status, wanted.epochs):
        return math.inf
    differences = [
        float((a.detach().cpu().double() - b.detach().double()).abs().max())
        for a, b in zip(there[0].parameters(), here[0].parameters(), strict=True)
    ]
    losses = np.array(found.history.loss) - np.array(wanted.history.loss)
    differences.append(float(np.abs(losses).max()))
    return math.inf if any(map(math.isnan, differences)) else max(differences)
