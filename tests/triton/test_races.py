"""Between two barriers no thread reads what another writes, or writes what another reads.

On a GPU the threads of a program run as they please between barriers, and the interpreter runs them
in step. So it is watched here: what is stored isn't loaded before the next barrier; and what is
loaded or stored is stored again only by an operation on the same addresses in the same order, which
writes what it has made of the elements that it loaded.
"""

# triton isn't where the types are checked
# pyright: basic, reportMissingImports=false

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pytest
from triton.runtime.interpreter import InterpreterBuilder

from capacity.database import Database, random_database
from capacity.layer import LayerConfig, Recipe
from capacity.layer.engines.triton import engine, launches
from capacity.layer.packed import PackedLayers


class Watch:
    """Addresses that were loaded and stored since the last barrier, by the operations."""

    def __init__(self) -> None:
        self.races = 0
        self.barriers = 0
        self._loaded: dict[int, set[bytes]] = {}
        self._stored: dict[int, set[bytes]] = {}

    def load(self, pointers: np.ndarray, mask: np.ndarray) -> None:
        own, name = pointers[mask].tolist(), pointers.tobytes()
        self.races += any(address in self._stored for address in own)
        for address in own:
            self._loaded.setdefault(address, set()).add(name)

    def store(self, pointers: np.ndarray, mask: np.ndarray) -> None:
        own, name = pointers[mask].tolist(), pointers.tobytes()
        self.races += any(
            known.get(address, {name}) != {name}
            for known in (self._loaded, self._stored)
            for address in own
        )
        for address in own:
            self._stored.setdefault(address, set()).add(name)

    def barrier(self) -> None:
        self.barriers += 1
        self._loaded.clear()
        self._stored.clear()


@contextmanager
def watched(*, every: int = 1) -> Iterator[Watch]:
    """Watch a launch; with `every` above 1 only each so many barriers count."""
    watch, calls = Watch(), 0
    load, store = InterpreterBuilder.create_masked_load, InterpreterBuilder.create_masked_store

    def watched_load(self, ptrs, mask, *others):  # type: ignore[no-untyped-def]
        watch.load(ptrs.data, mask.data)
        return load(self, ptrs, mask, *others)

    def watched_store(self, ptrs, value, mask, *others):  # type: ignore[no-untyped-def]
        watch.store(ptrs.data, mask.data)
        return store(self, ptrs, value, mask, *others)

    def barrier(_self):  # type: ignore[no-untyped-def]
        nonlocal calls
        calls += 1
        if calls % every == 0:
            watch.barrier()

    with patch.multiple(
        InterpreterBuilder,
        create_masked_load=watched_load,
        create_masked_store=watched_store,
        create_barrier=barrier,
    ):
        yield watch


def launch(config: LayerConfig, db: Database, recipe: Recipe) -> None:
    """Launch a run for all its epochs."""
    packed = PackedLayers.drawn([config], [db.n_tokens])
    ((_, group),) = engine.groups_of(packed, [db], recipe)
    launches.Launches(group, recipe).launch(recipe.epochs + 1)


@pytest.mark.parametrize("positions", ["both", "object"])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_no_thread_reads_what_another_writes(positions: str, decay: float) -> None:
    # more tokens than a block of sums has, more rows than a block of logits
    db = random_database(1, triples=(60, 100))
    recipe = Recipe(epochs=3, positions=positions, weight_decay=decay)  # type: ignore[arg-type]
    with watched() as watch:
        launch(LayerConfig(3, 2, 2, 2), db, recipe)
    assert watch.races == 0
    # at least three stages in each epoch, and two in the last look
    assert watch.barriers >= 3 * recipe.epochs + 2


def test_a_missing_barrier_is_a_race() -> None:
    db = random_database(1, triples=(20, 40))
    with watched(every=10**9) as watch:
        launch(LayerConfig(3, 2, 2, 2), db, Recipe(epochs=1))
    assert watch.races > 0
