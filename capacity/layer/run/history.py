"""The curve of a training: loss and share of known facts by epoch. No torch in here.

All epochs below 32 are recorded, and then 16 in each doubling, so that a short training is recorded
in full, a long one in a few hundred numbers, and the cost vanishes among the epochs between.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from capacity.optional import needed_by

if TYPE_CHECKING:
    import pandas as pd

# epochs below this are all recorded, and half as many in each doubling
ALL_BELOW = 32


@dataclass(frozen=True, repr=False)
class History:
    """Loss and accuracy of a training at the epochs that were recorded, and at its end.

    Before an epoch of one step they are those of the weights it starts from, over all facts. For an
    epoch in batches they are means over its batches, each with the weights that it met. The last
    entry is of the final weights and over all facts.

    Attributes
    ----------
    epochs : tuple of int
        Numbers of epochs done, ascending; the last is `Training.epochs`. Empty if the engine
        records nothing.
    loss : tuple of float
        Mean next-token cross entropy, in nats, as `Training.loss`.
    accuracy_p50 : tuple of float
        Share of the facts whose object has a probability above one half.

    Examples
    --------
    >>> History((0, 1), (2.3, 0.1), (0.0, 1.0))
    History(2 epochs recorded from 0 to 1, loss 2.3 to 0.1)
    """

    epochs: tuple[int, ...] = ()
    loss: tuple[float, ...] = ()
    accuracy_p50: tuple[float, ...] = ()

    def __repr__(self) -> str:
        if not self.epochs:
            return "History(no epoch recorded)"
        return (
            f"History({len(self.epochs)} epochs recorded from {self.epochs[0]} to "
            f"{self.epochs[-1]}, loss {self.loss[0]:.4g} to {self.loss[-1]:.4g})"
        )

    def to_pandas(self) -> pd.DataFrame:
        """Return the curve as a table with the columns ``epoch``, ``loss``, ``accuracy_p50``.

        Examples
        --------
        >>> History((0, 1), (2.3, 0.1), (0.0, 1.0)).to_pandas()
           epoch  loss  accuracy_p50
        0      0   2.3           0.0
        1      1   0.1           1.0
        """
        with needed_by("History.to_pandas"):
            import pandas as pd

        return pd.DataFrame(
            {
                "epoch": np.array(self.epochs, dtype=np.int64),
                "loss": np.array(self.loss, dtype=np.float64),
                "accuracy_p50": np.array(self.accuracy_p50, dtype=np.float64),
            }
        )


# of an engine that records nothing
NO_HISTORY = History()


@cache
def recorded_epochs(n_epochs: int) -> NDArray[np.int64]:
    """List the epochs, of `n_epochs` at most, before or in which the curve is recorded.

    They depend on neither engine nor database, so that curves can be compared with each other.

    Examples
    --------
    >>> recorded_epochs(70).tolist()[30:]
    [30, 31, 32, 34, 36, 38, 40, 42, 44, 46, 48, 50, 52, 54, 56, 58, 60, 62, 64, 68]
    """
    parts = [np.arange(min(ALL_BELOW, n_epochs))]
    start, step = ALL_BELOW, 2
    while start < n_epochs:
        parts.append(np.arange(start, min(2 * start, n_epochs), step))
        start, step = 2 * start, 2 * step
    epochs = np.concatenate(parts).astype(np.int64)
    epochs.flags.writeable = False
    return epochs


class Recorder:
    """The curve of a training that continues, in arrays that a snapshot can hold.

    Parameters
    ----------
    n_epochs : int
        Largest number of epochs.

    Attributes
    ----------
    epochs : ndarray of int64, shape (n_recorded,)
        The epochs to record (`recorded_epochs`).
    losses, shares : ndarrays of float64, shape (n_recorded,)
        What was recorded; NaN elsewhere.

    Examples
    --------
    >>> recorder = Recorder(2000)
    >>> recorder.note(0, 2.5, 0.0)
    >>> recorder.note(1999, 0.5, 1.0)  # not recorded
    >>> recorder.loss_before(1)
    2.5
    >>> recorder.history(1, 0.1, 1.0).loss
    (2.5, 0.1)
    """

    def __init__(self, n_epochs: int) -> None:
        self.epochs = recorded_epochs(n_epochs)
        self.losses, self.shares = (np.full(len(self.epochs), math.nan) for _ in range(2))

    @property
    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """The arrays that change, by the names they have in a snapshot."""
        return {"history.loss": self.losses, "history.accuracy_p50": self.shares}

    def note(self, epoch: int, loss: float, share: float) -> None:
        """Record an epoch, if it is one to be recorded."""
        i = self._n_before(epoch)
        if i < len(self.epochs) and self.epochs[i] == epoch:
            self.losses[i], self.shares[i] = loss, share

    def loss_before(self, epoch: int) -> float:
        """Return the last loss recorded before an epoch; NaN if there is none."""
        i = self._n_before(epoch) - 1
        return math.nan if i < 0 else float(self.losses[i])

    def history(self, epoch: int, loss: float, share: float) -> History:
        """Return the curve up to the end of training, with the values at the final weights."""
        n = self._n_before(epoch)
        return History(
            (*self.epochs[:n].tolist(), epoch),
            (*self.losses[:n].tolist(), float(loss)),
            (*self.shares[:n].tolist(), float(share)),
        )

    def _n_before(self, epoch: int) -> int:
        return int(self.epochs.searchsorted(epoch))


class Curves:
    """The curves of many trainings that continue together.

    Parameters
    ----------
    n_runs, n_epochs : int
        Number of trainings, and their largest number of epochs.

    Examples
    --------
    >>> curves = Curves(2, 5)
    >>> curves.note(curves.recorded(0, 2), np.array([[3.0, 2.0], [2.0, 1.0]]), np.zeros((2, 2)))
    >>> [history.loss for history in curves.histories([1, 2], [2.0, 0.5], [0.0, 1.0])]
    [(3.0, 2.0), (2.0, 1.0, 0.5)]
    """

    def __init__(self, n_runs: int, n_epochs: int) -> None:
        self._epochs = recorded_epochs(n_epochs)
        self._losses, self._shares = (
            np.full((n_runs, len(self._epochs)), math.nan) for _ in range(2)
        )

    def recorded(self, start: int, end: int) -> NDArray[np.int64]:
        """List the epochs to record from `start` on and before `end`."""
        return self._epochs[slice(*self._epochs.searchsorted([start, end]))]

    def note(self, epochs: NDArray[np.int64], losses: NDArray[Any], shares: NDArray[Any]) -> None:
        """Record some epochs of `recorded`, each array of shape (n_runs, n_epochs).

        What is recorded of a training after its end isn't looked at.
        """
        now = self._epochs.searchsorted(epochs)
        self._losses[:, now], self._shares[:, now] = losses, shares

    def histories(
        self,
        epochs: Sequence[int] | NDArray[Any],
        losses: Sequence[float] | NDArray[Any],
        shares: Sequence[float] | NDArray[Any],
    ) -> list[History]:
        """Return the curves up to the end of each training, with values at the final weights."""
        whole = tuple(self._epochs.tolist())
        ends = self._epochs.searchsorted(epochs).tolist()
        # one tuple for all trainings of one length
        seen = {epoch: (*whole[:n], epoch) for n, epoch in zip(ends, _plain(epochs), strict=True)}
        rows = (ends, _plain(epochs), self._losses.tolist(), self._shares.tolist())
        return [
            History(seen[epoch], (*row[:n], loss), (*known[:n], share))
            for n, epoch, row, known, loss, share in zip(
                *rows, _plain(losses), _plain(shares), strict=True
            )
        ]


def _plain(values: Sequence[Any] | NDArray[Any]) -> list[Any]:
    return np.asarray(values).tolist()
