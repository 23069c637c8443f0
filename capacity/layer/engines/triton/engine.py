"""Training by the kernel: groups of runs, launches of some hundred epochs, and their outcomes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from capacity.database.facts import Database
from capacity.layer.engines.triton.packing import Group, PackedRun, Shape
from capacity.layer.history import Recorder
from capacity.layer.model import AttentionLayer
from capacity.layer.recipe import Recipe, Status, Training

# epochs in a launch: an interrupt waits for its end
CHUNK = 256
# a warp for each scheduler. Whether products and sums are fused is fixed, since triton's default
# changes; without `maxnreg` the assembler spills to have room for one more program
OPTIONS = {"num_warps": 4, "enable_fp_fusion": True, "maxnreg": 255}


def run_many(
    tasks: Sequence[tuple[AttentionLayer, Database]],
    recipe: Recipe,
    _rngs: Sequence[np.random.Generator],
) -> list[Training]:
    """Train layers of one device in place, those of one shape in one launch."""
    both = recipe.positions == "both"
    groups: dict[Shape, list[int]] = {}
    for i, (layer, db) in enumerate(tasks):
        groups.setdefault(Shape.of(layer.config, db.n_tokens), []).append(i)
    results: dict[int, Training] = {}
    for shape, members in groups.items():
        # the longest first, so that none is left to run alone
        members.sort(key=lambda i: -tasks[i][1].n_triples)
        runs = [PackedRun.of(*tasks[i], both=both) for i in members]
        results.update(zip(members, train_group(Group(runs, shape), recipe), strict=True))
    return [results[i] for i in range(len(tasks))]


def train_group(group: Group, recipe: Recipe) -> list[Training]:
    """Train runs of one shape, and write their weights back."""
    launches = Launches(group, recipe)
    recorders = [Recorder(recipe.epochs) for _ in group.runs]
    for start in range(0, recipe.epochs + 1, CHUNK):
        launches.launch(min(start + CHUNK, recipe.epochs + 1))
        seen = launches.seen()
        for i, recorder in enumerate(recorders):
            now = (recorder.epochs >= start) & (recorder.epochs < seen.epochs[i])
            at = recorder.epochs[now] - start
            recorder.losses[now], recorder.shares[now] = seen.losses[i, at], seen.shares[i, at]
        if not (seen.going == 1).any():
            break
    group.write_back()
    return launches.trainings(recorders)


def gradients(group: Group, recipe: Recipe) -> list[dict[str, NDArray[np.float32]]]:
    """Gradients of the loss of each run, by the names of its layer's weights."""
    launches = Launches(group, replace(recipe, epochs=1, stop_tau=0.0))
    launches.launch(1, moves=False)
    found = launches.firsts.cpu()
    return [group.weights_of(i, found) for i in range(len(group.runs))]


class Seen(NamedTuple):
    """State of the runs after a launch.

    Attributes
    ----------
    epochs, going : (runs,)
        Epochs done; 1 while a run goes on, 0 if it has ended, 2 if its loss wasn't finite.
    least : (runs,)
        Least log-probability of a fact.
    losses, shares : (runs, CHUNK)
        Mean loss, and share of known facts, in the epochs of the launch in which a run was last.
    """

    epochs: NDArray[np.int32]
    going: NDArray[np.int32]
    least: NDArray[np.float32]
    losses: NDArray[np.float32]
    shares: NDArray[np.float64]


class Launches:
    """Runs under way: their weights and moments, and what the kernel tells of them."""

    def __init__(self, group: Group, recipe: Recipe) -> None:
        self._group, self._recipe = group, recipe
        n, like = len(group.runs), group.values
        self.firsts, self._seconds = torch.zeros_like(like), torch.zeros_like(like)
        self._scratch = like.new_zeros(n, group.n_scratch)
        integers = {"dtype": torch.int32, "device": group.device}
        self._state = {
            "epochs": torch.zeros(n, **integers), "going": torch.ones(n, **integers),
            "least_log_p": like.new_zeros(n), "losses": like.new_zeros(n, CHUNK),
            "known": torch.zeros(n, CHUNK, **integers),
        }  # fmt: skip
        self._rates = torch.from_numpy(rates_of(recipe)).to(group.device)

    def launch(self, last_epoch: int, *, moves: bool = True) -> None:
        """Train all runs until an epoch; without `moves`, store their gradients instead."""
        # needs triton
        from capacity.layer.engines.triton import kernel

        launch: Any = kernel.train
        group, recipe, shape = self._group, self._recipe, self._group.shape
        rows, tokens = blocks(shape)
        held = moves and holds_moments(shape)
        launch[(len(group.runs),)](
            group.values, self.firsts, self._seconds, self._scratch,
            **group.facts, **self._state, rates=self._rates, **group.lengths,
            last_epoch=last_epoch, total_epochs=recipe.epochs, chunk=CHUNK,
            enough=math.log(recipe.stop_tau) if recipe.stop_tau else math.inf,
            beta2=recipe.beta2, decay=recipe.weight_decay,
            TOKENS=shape.tokens, D=shape.d_model, HEADS=shape.n_heads, E=shape.d_head,
            ROWS_A_BLOCK=rows, TOKENS_A_BLOCK=tokens, DECOUPLED=recipe.optimizer == "adamw",
            DECAYS=recipe.weight_decay > 0, MOVES=moves, HELD=held, **OPTIONS,
        )  # fmt: skip

    def seen(self) -> Seen:
        """Wait for the launch, and copy what it tells."""
        epochs, going, least, losses, known = (t.cpu().numpy() for t in self._state.values())
        n_facts = np.array([[run.n_facts] for run in self._group.runs])
        return Seen(epochs, going, least, losses, known / n_facts)

    def trainings(self, recorders: Sequence[Recorder]) -> list[Training]:
        """Outcomes of the runs, all of which have ended."""
        seen = self.seen()
        held = torch.cat([self._group.values, self._seconds], dim=1)
        sound = held.isfinite().all(dim=1).cpu().numpy()
        stop = self._recipe.stop_tau
        trainings: list[Training] = []
        for i, recorder in enumerate(recorders):
            epochs = int(seen.epochs[i])
            loss, share = (
                float(seen.losses[i, epochs % CHUNK]),
                float(seen.shares[i, epochs % CHUNK]),
            )
            if seen.going[i] == 2:
                # it has made a step since its loss was no number, and looked at nothing
                loss, share = math.nan, 0.0
            status: Status = "completed"
            if not (sound[i] and math.isfinite(loss)):
                status = "diverged"
            elif stop and seen.least[i] >= math.log(stop):
                status = "memorised"
            history = recorder.history(epochs, loss, share)
            trainings.append(Training(status, epochs, loss, "triton", history))
        return trainings


def rates_of(recipe: Recipe) -> NDArray[np.float32]:
    """The optimizer's table of each epoch, and of one more.

    Its columns are the rate over 1 - 0.9^t, 1 / sqrt(1 - beta2^t), and the rate, for step t.
    """
    t = np.arange(1, recipe.epochs + 1)
    rates = recipe.learning_rates()
    table = np.zeros((recipe.epochs + 1, 3), dtype=np.float32)
    table[:-1, 0] = rates / (1 - 0.9**t)
    table[:-1, 1] = 1 / np.sqrt(1 - recipe.beta2**t)
    table[:-1, 2] = rates
    return table


def blocks(shape: Shape) -> tuple[int, int]:
    """Rows in a block of logits, and tokens in a block of sums: what registers hold."""
    return 8 if shape.tokens <= 256 else 4, min(16, 512 // shape.d_heads)


def holds_moments(shape: Shape) -> bool:
    """Return True if the moments of W_U and of the heads fit in registers: 32 of each thread.

    They are then read once a launch, and not in each step. Those of W_E, which is moved a block of
    tokens at a time, stay in memory; so do the weights, whose rows are read in loops.
    """
    threads = 32 * OPTIONS["num_warps"]
    return 2 * shape.d_model * (shape.tokens + 4 * shape.d_heads) <= 32 * threads
