"""Conversion of a run to the arrays of the kernels, and back."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capacity.database.facts import Database
from capacity.layer.engines.engine import Workload
from capacity.layer.engines.fused import buffers, epochs
from capacity.layer.engines.fused.buffers import (
    IDLE,
    Layout,
    aligned_zeros,
    facts_of,
    new_work,
    padded,
)
from capacity.layer.engines.fused.kernels import kernel_for
from capacity.layer.engines.simd import ROW
from capacity.layer.engines.simd.pointers import words
from capacity.layer.engines.simd.vector import VECTOR_BYTES
from capacity.layer.model.config import LayerConfig
from capacity.layer.model.forward import Weights
from capacity.layer.run.history import History, Recorder
from capacity.layer.run.recipe import Recipe
from capacity.layer.run.snapshots import Snapshots

Array = NDArray[Any]

# seconds that an interrupt waits for at most, roughly
PATIENCE_S = 0.2
# most logits in memory at a time, for the loss
LOSS_ENTRIES = 1 << 20
# of flat arrays, in their names in a snapshot, so that one of another layout doesn't fit
_LAYOUT = "_of_whole_rows"


class PackedRun:
    """One run in the arrays of the kernels."""

    def __init__(
        self,
        config: LayerConfig,
        weights: Weights,
        db: Database,
        recipe: Recipe,
        frozen: Collection[str] = (),
    ) -> None:
        self._config, self._recipe, self._given = config, recipe, weights
        self.dtype = weights["W_E"].dtype
        lanes = VECTOR_BYTES // self.dtype.itemsize
        ids = db.token_triples.astype(np.int64)
        self._active, rows = np.unique(ids[:, :2], return_inverse=True)
        self._idle = np.setdiff1d(np.arange(db.n_tokens), self._active)
        self.facts = facts_of(rows.reshape(-1, 2), ids, both=recipe.positions == "both")
        self._workload = Workload(config, recipe, db.n_triples, db.n_tokens, self.dtype.name)
        self._sizes = buffers.Sizes(
            config.d_model, len(self._active), config.n_heads, config.d_head_qk, config.d_head_vo,
            db.n_tokens, padded(db.n_tokens, lanes),
        )  # fmt: skip
        self._layout = Layout(config, len(self._active), len(self._idle), lanes)
        size = self._layout.size
        still = set(frozen)
        if "W_E" in still or not recipe.weight_decay:
            # without a gradient
            still.add(IDLE)
        self.state = buffers.State(
            values=aligned_zeros(size, self.dtype),
            gradient=aligned_zeros(size, self.dtype),
            first=aligned_zeros(size, self.dtype),
            second=aligned_zeros(size, self.dtype),
            decayed=np.ones(2),
        )
        self._read(weights)
        both = recipe.positions == "both"
        spans = self._layout.moving(still)
        self._rule = buffers.Rule(
            scale=config.attention_scale,
            first_weight=0.5 if both else 0.0,
            second_weight=0.5 if both else 1.0,
            stop_tau=recipe.stop_tau,
            beta_1=0.9,
            beta_2=recipe.beta2,
            weight_decay=recipe.weight_decay,
            decoupled=int(recipe.optimizer == "adamw"),
            n_spans=len(spans),
            spans=spans.ravel(),
        )
        self._work = new_work(self._sizes, self.facts, self.dtype)
        self._recorder = Recorder(recipe.epochs)

    def train(self, rng: np.random.Generator, snapshots: Snapshots) -> tuple[int, int]:
        """Train all epochs, from the snapshot if any; return their end and the epochs done."""
        recipe, n = self._recipe, len(self.facts.subjects)
        size = recipe.facts_a_step(n) or n
        batch = self._new_batch(size)
        batch_work = new_work(self._sizes, batch, self.dtype) if size < n else self._work
        recorder = self._recorder
        run = self._run(recorder, self._rule, recipe.learning_rates())
        arguments = (
            kernel_for("batches" if size < n else "full", self._workload).zeros,
            words(run),
        )
        # each call of a kernel begins with a look, so nothing else has to be kept
        changing = {
            **{f"{name}{_LAYOUT}": array for name, array in self.state._asdict().items()},
            "shifts": self._work.shifts, "batch_shifts": batch_work.shifts, **recorder.arrays,
        }  # fmt: skip
        epoch, held = snapshots.recall(rng, lambda: changing, recipe.epochs)
        for name, array in held.items():
            changing[name][...] = array
        end, stride = epochs.GOING, self._epochs_a_call(-(-n // size))
        while end == epochs.GOING and epoch < recipe.epochs:
            if epoch in snapshots.at:
                self.write_back(self._given)
            snapshots.offer(epoch, rng, lambda: changing, loss=recorder.loss_before(epoch))
            stop = snapshots.next_stop(epoch, min(epoch + stride, recipe.epochs))
            if size == n:
                end, epoch = epochs.train_epochs(*arguments, epoch, stop)
            else:
                start, before = epoch, rng.bit_generator.state
                orders = np.array([rng.permutation(n) for _ in range(start, stop)], np.int64)
                batches = buffers.Batches(len(orders), orders, batch, batch_work)
                end, epoch = epochs.train_batches(*arguments, words(batches), start)
                if epoch < stop:
                    # leave the generator as after the epochs that were done
                    rng.bit_generator.state = before
                    for _ in range(start, epoch):
                        rng.permutation(n)
        if end == epochs.GOING and (size < n or not recipe.epochs):
            # a look with the final weights
            end, _ = epochs.train_epochs(self._looking, words(run), epoch, epoch)
        return end, epoch

    def loss(self) -> float:
        """Mean loss of the last predictions, in float64 given the residuals."""
        facts, n, rule = self.facts, len(self.facts.subjects), self._rule
        n_first = len(facts.row_subjects)
        U = self._layout.shaped(self.state.values)["W_U"].astype(np.float64)
        rows = self._work.rows.reshape(-1, ROW)[: n_first + n, : len(U)]
        counts = np.append(np.diff(facts.row_starts), np.ones(n, np.int64))
        targets = np.append(facts.row_predicates, facts.objects)
        ends = np.cumsum(counts)
        losses = np.empty(len(rows))
        step = max(1, LOSS_ENTRIES // U.shape[1])
        for start in range(0, len(rows), step):
            stop = min(start + step, len(rows))
            z = rows[start:stop].astype(np.float64) @ U
            most = z.max(axis=1)
            lse = most + np.log(np.exp(z - most[:, None]).sum(axis=1))
            asked = slice(ends[start] - counts[start], ends[stop - 1])
            of = np.repeat(np.arange(stop - start), counts[start:stop])
            losses[start:stop] = np.bincount(of, lse[of] - z[of, targets[asked]])
        first, second = losses[:n_first].sum(), losses[n_first:].sum()
        return float(rule.first_weight * first + rule.second_weight * second) / n

    def history(self, epoch: int, loss: float) -> History:
        """Return the curve, with the loss of the last predictions and the share that they know."""
        right = self._work.right
        return self._recorder.history(epoch, loss, np.count_nonzero(right > 0.5) / len(right))

    def _run(self, recorder: Recorder, rule: buffers.Rule, rates: Array) -> buffers.Run:
        curve = buffers.Curve(
            len(recorder.epochs), recorder.epochs, recorder.losses, recorder.shares
        )
        return buffers.Run(
            self._sizes, rule, self.facts, self._weights, self._grads, self._work, self.state,
            curve, len(rates), rates,
        )  # fmt: skip

    def gradients(self) -> dict[str, Array]:
        """Gradients of the full-batch loss, shaped like the layer's weights.

        The weights stay as they are; the moments are overwritten.
        """
        # a layer that knows its facts has gradients, too
        run = self._run(Recorder(0), self._rule._replace(stop_tau=0.0), np.zeros(1))
        epochs.train_epochs(self._looking, words(run), 0, 1)
        return self._unpacked(self.state.gradient)

    @property
    def _looking(self) -> tuple[Any, ...]:
        """First argument of a kernel that hardly trains."""
        no_epochs = replace(self._workload.recipe, epochs=0)
        return kernel_for("full", replace(self._workload, recipe=no_epochs)).zeros

    @property
    def is_finite(self) -> bool:
        """True if all weights and second moments are finite: an overflow would freeze a weight."""
        state = self.state
        return bool(np.isfinite(state.values).all() and np.isfinite(state.second).all())

    def write_back(self, weights: Weights) -> None:
        """Write the weights into arrays of the names and shapes that they came in."""
        for name, array in self._unpacked(self.state.values).items():
            weights[name][...] = array

    @cached_property
    def _weights(self) -> buffers.Weights:
        return self._layout.views(self.state.values)

    @cached_property
    def _grads(self) -> buffers.Weights:
        return self._layout.views(self.state.gradient)

    def _read(self, given: Weights) -> None:
        """Read weights into the arrays."""
        W_E = given["W_E"]
        parts = {**given, "W_E": W_E[self._active], IDLE: W_E[self._idle]}
        for name, view in self._layout.shaped(self.state.values).items():
            view[...] = parts[name]

    def _unpacked(self, flat: Array) -> dict[str, Array]:
        """Copies of the parts of a flat array, with the layer's shapes and tokens."""
        arrays = {name: view.copy() for name, view in self._layout.shaped(flat).items()}
        embeddings = np.zeros((self._sizes.tokens, self._config.d_model), self.dtype)
        embeddings[self._active], embeddings[self._idle] = arrays["W_E"], arrays.pop(IDLE)
        return {**arrays, "W_E": embeddings}

    def _new_batch(self, size: int) -> buffers.Facts:
        """Allocate the arrays of a batch of facts."""
        n_first = size if len(self.facts.row_subjects) else 0
        lengths = (size, size, size, 0, n_first, 0, size)
        room = buffers.Facts(size, n_first, *(np.zeros(length, np.int64) for length in lengths))
        return room._replace(row_starts=np.arange(n_first + 1))

    def _epochs_a_call(self, n_steps: int) -> int:
        """Number of epochs in `PATIENCE_S` seconds, at about 10^9 numbers a second."""
        rows = len(self.facts.row_subjects) + len(self.facts.subjects)
        # a step goes over all weights several times
        numbers = 2 * rows * self._layout.width + 20 * n_steps * len(self.state.values)
        return max(1, int(PATIENCE_S * 1e9 / numbers))
