"""Training by the kernel: groups of runs, launches of some hundred epochs, and their outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from capacity.database.facts import Database
from capacity.layer.engines.triton import launches
from capacity.layer.engines.triton.packing import Group, Sizes
from capacity.layer.model.attention_layer import AttentionLayer
from capacity.layer.packed import PackedLayers, train_together
from capacity.layer.run.history import Curves
from capacity.layer.run.recipe import Recipe, Training
from capacity.layer.run.snapshots import NO_SNAPSHOTS, Snapshots


def run(
    layer: AttentionLayer,
    db: Database,
    recipe: Recipe,
    rng: np.random.Generator,
    _snapshots: Snapshots = NO_SNAPSHOTS,
) -> Training:
    """Train one layer in place; `capacity.layer.train` checks the arguments."""
    return train_together(run_many, [(layer, db)], recipe, [rng])[0]


def run_many(
    packed: PackedLayers,
    databases: Sequence[Database],
    recipe: Recipe,
    _rngs: Sequence[np.random.Generator],
) -> list[Training]:
    """Train layers of one device in place, those of one shape in one launch.

    Each shape has a stream of its own: a device that is done with most runs of one shape continues
    with another, and what the host does for one shape falls into the training of others.
    """
    device = packed.values.device
    trainings: dict[int, Training] = {}
    trainers = [
        (members, Trainer(group, recipe)) for members, group in groups_of(packed, databases, recipe)
    ]
    going = [(own_stream(device), *one) for one in trainers]
    try:
        for stream, _, trainer in going:
            with stream:
                trainer.launch()
        while going:
            for one in list(going):
                stream, members, trainer = one
                with stream:
                    if trainer.goes_on():
                        trainer.launch()
                    else:
                        trainings.update(zip(members, trainer.finished(packed), strict=True))
                        going.remove(one)
    finally:
        # interrupted, kernels still write to memory that would be free with this frame
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    return [trainings[i] for i in range(len(packed))]


def own_stream(device: torch.device) -> AbstractContextManager[object]:
    """Return the context of a new stream, whose work follows what has been asked for so far."""
    if device.type != "cuda":
        return nullcontext()
    stream = torch.cuda.Stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    return torch.cuda.stream(stream)


def groups_of(
    packed: PackedLayers, databases: Sequence[Database], recipe: Recipe
) -> Iterator[tuple[list[int], Group]]:
    """Runs of one shape, as the numbers of their layers and as the kernel's arrays."""
    distinct = list({id(db): db for db in databases}.values())
    number = {id(db): i for i, db in enumerate(distinct)}
    of = np.array([number[id(db)] for db in databases])
    n_facts = np.array([db.n_triples for db in distinct])[of]
    sizes = Sizes.of(packed)
    shapes, shape_of = sizes.shapes()
    for i, shape in enumerate(shapes):
        members = np.flatnonzero(shape_of == i)
        # the longest first, so that none is left to run alone
        members = members[np.argsort(-n_facts[members], kind="stable")]
        there, its = np.unique(of[members], return_inverse=True)
        some = [distinct[j] for j in there]
        group = Group(
            packed, members, sizes.some(members), some, its, shape, both=recipe.positions == "both"
        )
        yield members.tolist(), group


class Trainer:
    """Training of the runs of one shape, launch by launch."""

    def __init__(self, group: Group, recipe: Recipe) -> None:
        self._group, self._recipe, self._launches = group, recipe, launches.Launches(group, recipe)
        self._curves = Curves(len(group.n_facts), recipe.epochs)
        self._start = self._end = 0

    def launch(self) -> None:
        """Train all runs for some epochs, without waiting for it."""
        self._start, self._end = self._end, min(self._end + launches.CHUNK, self._recipe.epochs + 1)
        self._launches.launch(self._end)

    def goes_on(self) -> bool:
        """Wait for the launch, record its curves, and return True if some run isn't done."""
        recorded = self._curves.recorded(self._start, self._end)
        self._seen = self._launches.seen(recorded)
        self._curves.note(recorded, self._seen.losses[:, :-1], self._seen.shares[:, :-1])
        return self._end <= self._recipe.epochs and bool((self._seen.going == 1).any())

    def finished(self, packed: PackedLayers) -> list[Training]:
        """Copy the weights into the layers, wait for it, and return the outcomes."""
        self._group.unpack(self._group.values, packed.values)
        return self._launches.trainings(self._seen, self._curves)


def gradients(
    packed: PackedLayers, databases: Sequence[Database], recipe: Recipe
) -> list[dict[str, Tensor]]:
    """Gradients of the loss of each run, by the names of its layer's weights."""
    found = PackedLayers(packed.configs, packed.d_vocabs, torch.zeros_like(packed.values))
    once = replace(recipe, epochs=1, stop_tau=0.0)
    for _, group in groups_of(packed, databases, once):
        once_launched = launches.Launches(group, once)
        once_launched.launch(1, moves=False)
        group.unpack(once_launched.firsts, found.values)
    return [found.weights(i) for i in range(len(found))]
