"""Snapshots of a training run, from which it resumes with a bit-identical result.

A snapshot holds all that epochs change: weights, moments, the state of the generator that orders
the facts, and the number of epochs done. It is one file: a SHA-256 digest of the run's name and of
the rest, then an ``.npz``. A file that is damaged, or belongs to another run or to other arrays, is
ignored, and the run starts over. The digest detects damage, not forgery.

They also report the progress of a training. No torch in here.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from capacity.errors import StorageError
from capacity.layer.run.recipe import Recipe, Training
from capacity.progress import Progress
from capacity.safe_files import read_file, write_whole

Arrays: TypeAlias = Mapping[str, NDArray[Any]]

# least time between two snapshots of a run, and before its first
SECONDS = 5.0
# and in multiples of the time that the last took to write: large runs are hardly slowed
WRITINGS = 10
_DIGEST_BYTES = hashlib.sha256().digest_size
# name of the member that holds epoch and generator, in JSON
_REST = "rest"
# most bytes of a file beside its arrays
_REST_BYTES = 2**20


class Snapshots:
    """Snapshots of one run, of which the last is kept.

    Parameters
    ----------
    path : Path or None
        File of the snapshot; None to keep none.
    of : str
        Name of the run. It must depend on all that determines the result, as the key of a sweep's
        run does.
    tell : callable, optional
        Function that is called with the number of epochs done, and the last known loss, whenever a
        snapshot could be taken.
    at : collection of int
        Numbers of epochs done at which an engine offers a snapshot in any case, with the layer's
        weights as they are then.
    """

    def __init__(
        self,
        path: Path | None,
        of: str,
        *,
        tell: Callable[[int, float], object] | None = None,
        at: Collection[int] = (),
    ) -> None:
        self._path, self._of, self._tell, self.at = path, of, tell, frozenset(at)
        self._due = time.monotonic() + SECONDS

    def telling(
        self, tell: Callable[[int, float], object], *, at: Collection[int] = ()
    ) -> Snapshots:
        """Return the same snapshots, which also report the number of epochs done and the loss."""
        before = self._tell

        def both(epoch: int, loss: float) -> None:
            if before is not None:
                before(epoch, loss)
            tell(epoch, loss)

        return Snapshots(self._path, self._of, tell=both, at=self.at | set(at))

    def next_stop(self, epoch: int, most: int) -> int:
        """Return the first of `at` after `epoch`, but `most` if that comes before."""
        return min([most, *(each for each in self.at if epoch < each)])

    def recall(
        self, generator: np.random.Generator, like: Callable[[], Arrays], epochs: int
    ) -> tuple[int, Arrays]:
        """Read the snapshot, if there is one that fits.

        Parameters
        ----------
        generator : numpy.random.Generator
            Generator of the run; set to the state of the snapshot.
        like : callable
            Function that returns arrays with the names, shapes and dtypes that are required.
        epochs : int
            Number of epochs of the run, after which none can be resumed with.

        Returns
        -------
        epoch : int
            Epoch to resume with; 0 without a snapshot.
        arrays : mapping of str to array
            Arrays as they were before that epoch; empty without a snapshot.
        """
        anew: tuple[int, Arrays] = (0, {})
        if self._path is None:
            return anew
        with suppress(OSError, MemoryError, ValueError, TypeError, KeyError, BadZipFile):
            if not self._path.exists():
                return anew
            wanted = like()
            most = sum(array.nbytes for array in wanted.values()) + _REST_BYTES
            data = memoryview(read_file(self._path, max_bytes=most))
            body = data[_DIGEST_BYTES:]
            if data[:_DIGEST_BYTES] != self._digest(body) or not _is_stored(body):
                return anew
            with np.load(BytesIO(body), allow_pickle=False) as held:
                arrays = dict(held)
            rest = json.loads(arrays.pop(_REST).tobytes())
            epoch = rest["epoch"]
            if type(epoch) is int and 0 <= epoch <= epochs and _forms(arrays) == _forms(wanted):
                generator.bit_generator.state = rest["generator"]
                return epoch, arrays
        return anew

    def offer(
        self,
        epoch: int,
        generator: np.random.Generator,
        arrays: Callable[[], Arrays],
        *,
        loss: float = math.nan,
    ) -> None:
        """Write a snapshot if one is due.

        If it can't be written, for example on a full disk, training continues without it.

        Parameters
        ----------
        epoch : int
            The epoch that is about to begin.
        generator : numpy.random.Generator
            Generator of the run.
        arrays : callable
            Function that returns all other data that the remaining epochs depend on.
        loss : float
            The last known loss, for those who follow; NaN if there is none.
        """
        if self._tell is not None:
            self._tell(epoch, loss)
        if self._path is None or time.monotonic() < self._due:
            return
        start = time.monotonic()
        with suppress(StorageError, MemoryError):
            write_whole(self._path, self._written(epoch, generator, arrays()))
        now = time.monotonic()
        self._due = now + max(SECONDS, WRITINGS * (now - start))

    def _written(self, epoch: int, generator: np.random.Generator, arrays: Arrays) -> bytes:
        # some generators have arrays in their states
        state = {"epoch": epoch, "generator": generator.bit_generator.state}
        rest = np.frombuffer(json.dumps(state, default=np.ndarray.tolist).encode(), np.uint8)
        buffer = BytesIO()
        members: dict[str, Any] = {**arrays, _REST: rest}
        np.savez(buffer, **members)
        body = buffer.getbuffer()
        return b"".join((self._digest(body), body))

    def _digest(self, body: memoryview) -> bytes:
        digest = hashlib.sha256(self._of.encode() + b"\n")
        digest.update(body)
        return digest.digest()


# for a run that keeps none
NO_SNAPSHOTS = Snapshots(None, "")


def _is_stored(body: memoryview) -> bool:
    """Return whether no member is compressed, as in what `Snapshots` writes.

    A compressed one may expand to far more than the file holds.
    """
    with ZipFile(BytesIO(body)) as members:
        return all(one.compress_type == ZIP_STORED for one in members.infolist())


def _forms(arrays: Arrays) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    return {name: (array.shape, array.dtype) for name, array in arrays.items()}


def followed(
    train: Callable[[Snapshots], Training],
    recipe: Recipe,
    snapshots: Snapshots,
    progress: Progress | None,
    watch: Callable[[int, float], object] | None = None,
    watch_at: Collection[int] = (),
) -> Training:
    """Train, and report epochs and loss: `progress` and `watch` of `capacity.layer.train`."""
    if watch is not None:
        snapshots = snapshots.telling(watch, at=watch_at)
    if progress is not None:
        progress("epochs", 0, recipe.epochs, None)
        snapshots = snapshots.telling(
            lambda done, _loss: progress("epochs", done, recipe.epochs, None)
        )
    training = train(snapshots)
    if watch is not None:
        watch(training.epochs, training.loss)
    if progress is not None:
        # a layer that memorises stops early: what is left isn't trained
        progress("epochs", training.epochs, training.epochs, 0.0)
    return training
