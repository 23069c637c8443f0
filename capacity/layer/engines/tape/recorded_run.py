"""One training run on a tape: its instructions, and the arrays that they work on."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capacity.database.facts import Database
from capacity.layer.decoder.config import DecoderConfig, Place
from capacity.layer.decoder.structure import followed
from capacity.layer.engines.simd.pointers import words
from capacity.layer.engines.tape import execute
from capacity.layer.engines.tape.tape import (
    Buffer,
    Tape,
    instructions,
    layout_of,
    padded,
    with_heads_exchanged,
)
from capacity.layer.model.forward import Weights
from capacity.layer.run.history import Recorder
from capacity.layer.run.recipe import Recipe
from capacity.layer.run.snapshots import NO_SNAPSHOTS, Snapshots

Array = NDArray[Any]

# seconds that an interrupt waits for at most, roughly
PATIENCE_S = 0.2


class RecordedRun:
    """One run: its tape, and the arrays that the tape works on.

    Rows are the positions that predict: after each distinct subject, then after each fact's
    predicate. What a decoder computes after the subject is the same in all its facts.
    """

    def __init__(
        self,
        config: DecoderConfig,
        weights: Weights,
        db: Database,
        recipe: Recipe,
        frozen: Collection[str] = (),
        of_facts: NDArray[np.float64] | None = None,
    ) -> None:
        self._recipe, dtype = recipe, weights["W_E"].dtype
        ids = db.token_triples.astype(np.int64)
        subjects, subject_rows = np.unique(ids[:, 0], return_inverse=True)
        n_first, n = len(subjects), len(ids)
        rows = padded(n_first + n)
        token, source = np.zeros(rows, np.int64), np.arange(rows)
        position = np.zeros(rows, np.int64)
        token[:n_first], token[n_first : n_first + n] = subjects, ids[:, 1]
        source[n_first : n_first + n] = subject_rows
        position[n_first : n_first + n] = 1
        both = recipe.positions == "both"
        targets, masses = _targets(ids, subject_rows, n_first, both=both, of_facts=of_facts)
        row_weights = np.bincount(targets[:, 1], masses, minlength=rows)
        # an index into the logits, and the row
        targets[:, 0] = targets[:, 0] * rows + targets[:, 1]
        layout, size = layout_of(weights)
        self._layout = layout
        kept = [(w.at, w.at + padded(math.prod(w.shape))) for name, w in layout.items()
                if name not in frozen]  # fmt: skip
        spans = np.array(kept, np.int64).reshape(-1, 2)
        parts = [token, position, source, targets.ravel(), spans.ravel()]
        starts = np.cumsum([0, *map(len, parts)])
        self._indices = np.concatenate(parts)
        names: tuple[str, ...] = ("token", "position", "source")
        places: dict[str, int] = dict(zip(names, starts.tolist(), strict=False))
        tape = Tape(rows, position, places, layout, 4 * size)
        logits = recorded(config, tape)
        row_weights_at, masses_at = tape.constant(row_weights), tape.constant(masses)
        chosen, lse = tape.place(len(masses)), tape.place(2 * rows)
        clearing = [(execute.ZERO, at, n) for at, n in tape.cleared]
        self._forward = instructions([*clearing, *tape.forward])
        # gradients stay after the last epoch
        self._backward = instructions([(execute.ZERO, size, size), *tape.backward])
        execute.compile_for(dtype.name)
        self._a = np.zeros(tape.size, dtype)
        for at, values in tape.constants.items():
            self._a[at : at + len(values)] = values
        self._places = np.array(
            [rows, logits.at, logits.features, row_weights_at, lse, starts[3], masses_at,
             len(masses), chosen, n, 0, size, 2 * size, 3 * size, starts[4], len(spans),
             recipe.optimizer == "adamw"],
            np.int64,
        )  # fmt: skip
        self._rule = np.array(
            [recipe.stop_tau, 0.9, recipe.beta2, recipe.weight_decay, 1.0, 1.0], np.float64
        )
        self._size, self._first_pair = size, n_first
        for name, weight in layout.items():
            array = with_heads_exchanged(name, weights[name])
            self._a[weight.at : weight.at + array.size] = array.ravel()
        self._given = weights
        self._recorder = Recorder(recipe.epochs)

    def _epochs_a_call(self) -> int:
        """Number of epochs in `PATIENCE_S` seconds, at about 2 * 10^9 products a second."""
        products = [row[4] * row[5] for row in self._forward.tolist() if row[0] == execute.MATMUL]
        entries = 3 * sum(products) * int(self._places[0]) + len(self._a)
        return max(1, int(PATIENCE_S * 2e9 / entries))

    def train(
        self, rng: np.random.Generator, snapshots: Snapshots = NO_SNAPSHOTS
    ) -> tuple[int, int, float, float]:
        """Train all epochs, from the snapshot if any; return the end, epochs, loss and share."""
        recipe, recorder = self._recipe, self._recorder
        changing = {"weights_and_moments": self._a[: 4 * self._size], "decayed": self._rule,
                    **recorder.arrays}  # fmt: skip
        epoch, held = snapshots.recall(rng, lambda: changing, recipe.epochs)
        for name, array in held.items():
            changing[name][...] = array
        rates, stride = recipe.learning_rates(), self._epochs_a_call()
        run = self._as_run(self._a, self._places, self._rule, rates,
                           recorder.epochs, recorder.losses, recorder.shares)  # fmt: skip
        while True:
            if epoch in snapshots.at:
                self.write_back(self._given)
            snapshots.offer(epoch, rng, lambda: changing, loss=recorder.loss_before(epoch))
            stop = snapshots.next_stop(epoch, min(epoch + stride, recipe.epochs))
            end, epoch, loss, share = execute.train(words(run), self._a, epoch, stop)
            if end != execute.GOING or epoch == recipe.epochs:
                return end, epoch, loss, share

    def gradients(self) -> dict[str, Array]:
        """Gradients of the full-batch loss, shaped like the decoder's weights; no weight moves."""
        self._run(self._a, self._places, epochs=1)
        return self._outward(self._size)

    def logits(self) -> Array:
        """Logits after the facts' pairs, shape (n_facts, d_vocab); no weight moves."""
        rows, at, features = self._places[:3].tolist()
        places, n_facts = self._places.copy(), int(self._places[9])
        # the errors that take the place of logits in a training are written behind all else
        places[1] = len(self._a)
        a = np.append(self._a, np.zeros(features * rows, self._a.dtype))
        self._run(a, places, epochs=0)
        of_rows = a[at : at + features * rows].reshape(features, rows).T
        return of_rows[self._first_pair : self._first_pair + n_facts]

    def _run(self, a: Array, places: NDArray[np.int64], *, epochs: int) -> None:
        """Run the tape at a learning rate of 0."""
        none, rule = np.zeros(0), np.array([0.0, 0.0, 0.0, 0.0, 1.0, 1.0])
        run = self._as_run(a, places, rule, np.zeros(1), np.zeros(0, np.int64), none, none)
        execute.train(words(run), a, 0, epochs)

    def _as_run(
        self,
        a: Array,
        places: Array,
        rule: Array,
        rates: Array,
        marks: Array,
        losses: Array,
        shares: Array,
    ) -> execute.Run:
        return execute.Run(
            a, self._indices, self._forward, self._backward, places, rule, rates, marks, losses,
            shares, len(self._forward), len(self._backward), len(rates), len(marks),
        )  # fmt: skip

    @property
    def is_finite(self) -> bool:
        """True if all weights and second moments are finite: an overflow would freeze a weight."""
        n = self._size
        return bool(np.isfinite(self._a[:n]).all() and np.isfinite(self._a[3 * n : 4 * n]).all())

    def history(self, epoch: int, loss: float, share: float) -> Any:
        """Return the curve, with the last loss and share of known facts."""
        return self._recorder.history(epoch, loss, share)

    def write_back(self, weights: Weights) -> None:
        """Write the weights into arrays of the names and shapes that they came in."""
        for name, array in self._outward(0).items():
            weights[name][...] = array

    def _outward(self, start: int) -> dict[str, Array]:
        """Weights, or gradients, as arrays of the given shapes."""
        arrays: dict[str, Array] = {}
        for name, weight in self._layout.items():
            at = start + weight.at
            array = self._a[at : at + math.prod(weight.shape)].reshape(weight.shape)
            arrays[name] = with_heads_exchanged(name, array)
        return arrays


def recorded(config: DecoderConfig, tape: Tape) -> Buffer:
    """Record a decoder on a tape, and return the buffer of its logits."""

    def act(place: Place, x: Buffer | None) -> Buffer:
        tape.prefix = place.prefix
        return place.part.record(config, tape, x)

    return followed(config, None, act, tape.add)


def _targets(
    ids: Array,
    subject_rows: Array,
    n_first: int,
    *,
    both: bool,
    of_facts: NDArray[np.float64] | None,
) -> tuple[Array, NDArray[np.float64]]:
    """Tokens to predict with their rows, and their masses; the facts' objects come last."""
    n = len(ids)
    weights = np.ones(n) if of_facts is None else of_facts
    objects = np.stack([ids[:, 2], n_first + np.arange(n)], axis=1)
    if not both:
        return objects, weights / n
    predicates, of = np.unique(
        np.stack([ids[:, 1], subject_rows], axis=1), axis=0, return_inverse=True
    )
    masses = np.concatenate([np.bincount(of.ravel(), weights), weights]) / (2 * n)
    return np.concatenate([predicates, objects]), masses
