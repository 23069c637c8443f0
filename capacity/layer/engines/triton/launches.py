"""Launches of the kernel for the runs of one shape, and what it reports about them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from capacity.layer.engines.triton.packing import Group, Shape
from capacity.layer.run.history import Curves
from capacity.layer.run.recipe import Recipe, Training

# epochs in a launch: an interrupt waits for its end
CHUNK = 256
# a warp for each scheduler. Whether products and sums are fused is fixed, since triton's default
# changes; without `maxnreg` the assembler spills to have room for one more program
OPTIONS = {"num_warps": 4, "enable_fp_fusion": True, "maxnreg": 255}


class Seen(NamedTuple):
    """State of the runs after a launch.

    Attributes
    ----------
    epochs, going : (runs,)
        Epochs done; 1 while a run continues, 0 if it has ended, 2 if its loss wasn't finite.
    least : (runs,)
        Least log-probability of a fact.
    losses, shares : (runs, recorded epochs + 1)
        Mean loss, and share of known facts, in the epochs that were asked for, and in the last.
    """

    epochs: NDArray[np.int32]
    going: NDArray[np.int32]
    least: NDArray[np.float32]
    losses: NDArray[np.float32]
    shares: NDArray[np.float64]


class Launches:
    """Runs under way: their weights and moments, and what the kernel reports about them."""

    def __init__(self, group: Group, recipe: Recipe) -> None:
        self._group, self._recipe = group, recipe
        n, like = len(group.n_facts), group.values
        self.firsts, self._seconds = torch.zeros_like(like), torch.zeros_like(like)
        self._scratch = like.new_zeros(n, group.n_scratch)
        integers = {"dtype": torch.int32, "device": like.device}
        self._state = {
            "epochs": torch.zeros(n, **integers), "going": torch.ones(n, **integers),
            "least_log_p": like.new_zeros(n), "losses": like.new_zeros(n, CHUNK),
            "known": torch.zeros(n, CHUNK, **integers),
        }  # fmt: skip
        self._rates = torch.from_numpy(rates_of(recipe)).to(like.device)

    def launch(self, last_epoch: int, *, moves: bool = True) -> None:
        """Train all runs until an epoch; without `moves`, store their gradients instead."""
        # needs triton
        from capacity.layer.engines.triton import kernel

        launch: Any = kernel.train
        group, recipe, shape = self._group, self._recipe, self._group.shape
        rows, tokens = blocks(shape)
        held = moves and holds_moments(shape)
        launch[(len(group.n_facts),)](
            group.values, self.firsts, self._seconds, self._scratch,
            **group.facts, **self._state, rates=self._rates, **group.lengths,
            last_epoch=last_epoch, total_epochs=recipe.epochs, chunk=CHUNK,
            enough=math.log(recipe.stop_tau) if recipe.stop_tau else math.inf,
            beta2=recipe.beta2, decay=recipe.weight_decay,
            TOKENS=shape.tokens, D=shape.d_model, HEADS=shape.n_heads, E=shape.d_head,
            ROWS_A_BLOCK=rows, TOKENS_A_BLOCK=tokens, DECOUPLED=recipe.optimizer == "adamw",
            DECAYS=recipe.weight_decay > 0, MOVES=moves, HELD=held, **OPTIONS,
        )  # fmt: skip

    def seen(self, recorded: NDArray[np.int64]) -> Seen:
        """Wait for the launch, and copy what it reports, with losses in some of its epochs."""
        epochs, going, least, losses, known = self._state.values()
        at = torch.from_numpy(recorded % CHUNK).to(epochs.device).expand(len(epochs), -1)
        at = torch.cat([at, (epochs % CHUNK)[:, None]], dim=1)
        told = [
            *(column[:, None] for column in (epochs, going, least.view(torch.int32))),
            losses.gather(1, at).view(torch.int32),
            known.gather(1, at),
        ]
        whole = torch.cat(told, dim=1).cpu().numpy()
        end = 3 + at.shape[1]
        floats = np.ascontiguousarray(whole[:, 2:end]).view(np.float32)
        shares = whole[:, end:] / self._group.n_facts[:, None]
        return Seen(whole[:, 0], whole[:, 1], floats[:, 0], floats[:, 1:], shares)

    def trainings(self, seen: Seen, curves: Curves) -> list[Training]:
        """Outcomes of the runs, all of which have ended."""
        sound = self._group.values.isfinite().all(dim=1) & self._seconds.isfinite().all(dim=1)
        # where its loss was no number, it has made a step since, and looked at nothing
        looked = seen.going != 2
        losses = np.where(looked, seen.losses[:, -1], np.nan).astype(np.float64)
        shares = np.where(looked, seen.shares[:, -1], 0.0)
        statuses = np.full(len(losses), "completed", dtype=object)
        if self._recipe.stop_tau:
            statuses[seen.least >= math.log(self._recipe.stop_tau)] = "memorised"
        statuses[~(sound.cpu().numpy() & np.isfinite(losses))] = "diverged"
        histories = curves.histories(seen.epochs, losses, shares)
        outcomes = (statuses.tolist(), seen.epochs.tolist(), losses.tolist(), histories)
        return [
            Training(status, epochs, loss, "triton", history)
            for status, epochs, loss, history in zip(*outcomes, strict=True)
        ]


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
