"""Training by the kernel: groups of runs, launches of some hundred epochs, and their outcomes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from capacity.database.facts import Database
from capacity.layer.engines.triton.packing import ALIGNED, Group, Shape, Sizes
from capacity.layer.history import Curves
from capacity.layer.packed import PackedLayers
from capacity.layer.recipe import Recipe, Training

# epochs in a launch: an interrupt waits for its end
CHUNK = 256
# a warp for each scheduler. Whether products and sums are fused is fixed, since triton's default
# changes; without `maxnreg` the assembler spills to have room for one more program
OPTIONS = {"num_warps": 4, "enable_fp_fusion": True, "maxnreg": 255}


def run_many(
    packed: PackedLayers,
    databases: Sequence[Database],
    recipe: Recipe,
    _rngs: Sequence[np.random.Generator],
) -> list[Training]:
    """Train layers of one device in place, those of one shape in one launch."""
    trainings: dict[int, Training] = {}
    for members, group in groups_of(packed, databases, recipe):
        found = train_group(group, recipe)
        group.unpack(group.values, packed.values)
        trainings.update(zip(members, found, strict=True))
    return [trainings[i] for i in range(len(packed))]


def groups_of(
    packed: PackedLayers, databases: Sequence[Database], recipe: Recipe
) -> Iterator[tuple[list[int], Group]]:
    """Runs of one shape, as the numbers of their layers and as the kernel's arrays."""
    distinct = list({id(db): db for db in databases}.values())
    number = {id(db): i for i, db in enumerate(distinct)}
    of = np.array([number[id(db)] for db in databases])
    n_facts = np.array([db.n_triples for db in distinct])[of]
    shapes, shape_of = Sizes.of(packed).shapes()
    for i, shape in enumerate(shapes):
        members = np.flatnonzero(shape_of == i)
        # the longest first, so that none is left to run alone
        members = members[np.argsort(-n_facts[members], kind="stable")]
        there, its = np.unique(of[members], return_inverse=True)
        some = [distinct[j] for j in there]
        group = Group(packed, members, some, its, shape, both=recipe.positions == "both")
        yield members.tolist(), group


def train_group(group: Group, recipe: Recipe) -> list[Training]:
    """Train runs of one shape."""
    launches = Launches(group, recipe)
    curves = Curves(len(group.n_facts), recipe.epochs)
    start = 0
    while True:
        end = min(start + CHUNK, recipe.epochs + 1)
        launches.launch(end)
        seen = launches.seen()
        curves.note(start, seen.losses, seen.shares)
        if end > recipe.epochs or not (seen.going == 1).any():
            return launches.trainings(seen, curves)
        start = end


def gradients(
    packed: PackedLayers, databases: Sequence[Database], recipe: Recipe
) -> list[dict[str, Tensor]]:
    """Gradients of the loss of each run, by the names of its layer's weights."""
    found = PackedLayers(packed.configs, packed.d_vocabs, torch.zeros_like(packed.values))
    once = replace(recipe, epochs=1, stop_tau=0.0)
    for _, group in groups_of(packed, databases, once):
        launches = Launches(group, once)
        launches.launch(1, moves=False)
        group.unpack(launches.firsts, found.values)
    return [found.weights(i) for i in range(len(found))]


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
        n, like = len(group.n_facts), group.values
        self.firsts, self._seconds = torch.zeros_like(like), torch.zeros_like(like)
        self._scratch = like.new_zeros(n, group.n_scratch)
        # one tensor, which one copy brings back
        lengths = [-(-size // ALIGNED) * ALIGNED for size in (n, n, n, n * CHUNK, n * CHUNK)]
        self._told = torch.zeros(sum(lengths), dtype=torch.int32, device=like.device)
        epochs, going, least, losses, known = self._told.split(lengths)
        going.fill_(1)
        self._state = {
            "epochs": epochs, "going": going, "least_log_p": least.view(torch.float32),
            "losses": losses.view(torch.float32), "known": known,
        }  # fmt: skip
        self._lengths = lengths
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

    def seen(self) -> Seen:
        """Wait for the launch, and copy what it tells."""
        n = len(self._group.n_facts)
        parts = np.split(self._told.cpu().numpy(), np.cumsum(self._lengths)[:-1])
        epochs, going, least = (part[:n] for part in parts[:3])
        losses, known = (part[: n * CHUNK].reshape(n, CHUNK) for part in parts[3:])
        shares = known / self._group.n_facts[:, None]
        return Seen(epochs, going, least.view(np.float32), losses.view(np.float32), shares)

    def trainings(self, seen: Seen, curves: Curves) -> list[Training]:
        """Outcomes of the runs, all of which have ended."""
        sound = self._group.values.isfinite().all(dim=1) & self._seconds.isfinite().all(dim=1)
        last = np.arange(len(seen.epochs)), seen.epochs % CHUNK
        # where its loss was no number, it has made a step since, and looked at nothing
        looked = seen.going != 2
        losses = np.where(looked, seen.losses[last], np.nan).astype(np.float64)
        shares = np.where(looked, seen.shares[last], 0.0)
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
