"""Training of a group of runs in one batch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from capacity.layer.engines.padded.batch import GROUP, Batch, PaddedRun, Sizes, make_batch
from capacity.layer.engines.padded.gradients import losses_and_gradients
from capacity.layer.run.history import Recorder, recorded_epochs
from capacity.layer.run.recipe import Recipe, Status, Training

# numbers in the widest vectors
_LANES = 16
# epochs between two checks if all runs have ended, for which the host waits for the device
STRIDE = 25


class Group:
    """Runs of one padded size, in tensors whose first dimension is the run."""

    def __init__(
        self, tasks: Sequence[PaddedRun], sizes: Sizes, recipe: Recipe, facts_a_step: int
    ) -> None:
        self._tasks, self._sizes, self._recipe = tasks, sizes, recipe
        self._facts_a_step = facts_a_step
        W_E = tasks[0].weights["W_E"]
        self._options = {"device": W_E.device, "dtype": W_E.dtype}
        # always GROUP runs, some of zeros: the rounding of kernels depends on their shapes
        b, d, heads, e = GROUP, sizes.d_model, sizes.n_heads, sizes.d_head
        shapes = {
            "W_E": (sizes.active, d), "W_U": (d, sizes.tokens), "W_Q": (heads, d, e),
            "W_K": (heads, d, e), "W_V": (heads, d, e), "W_O": (heads, e, d),
            # embeddings of other tokens than subjects and predicates: only weight decay moves them
            "idle": (sizes.tokens, d),
        }  # fmt: skip
        ends = np.cumsum([0, *(math.prod(shape) for shape in shapes.values())]).tolist()
        self._values, self._gradient, self._first, self._second = (
            torch.zeros(b, -(-ends[-1] // _LANES) * _LANES, **self._options) for _ in range(4)
        )
        bounds = list(zip(shapes.items(), ends[:-1], ends[1:], strict=True))
        self._weights, self._grads = (
            {name: flat[:, i:j].view(b, *shape) for (name, shape), i, j in bounds}
            for flat in (self._values, self._gradient)
        )
        configs = [task.config for task in tasks]
        scales = [c.attention_scale for c in configs]
        self._scale = torch.ones(b, 1, 1, **self._options)
        self._scale[: len(tasks), 0, 0] = torch.tensor(scales, **self._options)
        self._columns = torch.zeros(b, 1, sizes.tokens, **self._options)
        for i, task in enumerate(tasks):
            self._columns[i, :, task.db.n_tokens :] = -torch.inf
            for _, weight, rows, part in self._parts(i, self._weights):
                part.copy_(weight[rows])
        everything = [np.arange(task.db.n_triples) for task in tasks]
        self._whole = self._batch(everything, sizes.facts)
        # epoch, losses and shares of known facts, on the device until the end
        self._curve: list[tuple[int, Tensor, Tensor]] = []
        self._going = torch.arange(b, device=W_E.device) < len(tasks)
        self._epochs = torch.zeros(b, dtype=torch.int64, device=W_E.device)
        # the betas, and their powers: beta^t after t steps of a run
        betas = torch.tensor([0.9, recipe.beta2], device=W_E.device, dtype=torch.float64)
        self._betas = betas.view(2, 1, 1)
        self._decayed = torch.ones(2, b, 1, dtype=torch.float64, device=W_E.device)

    def train(self) -> list[Training]:
        """Train all runs for all epochs, and write the weights back into the layers."""
        recipe = self._recipe
        enough = math.log(recipe.stop_tau) if recipe.stop_tau else math.inf
        memorised, diverged = (torch.zeros_like(self._going) for _ in range(2))
        finite, rates = torch.ones_like(self._going), recipe.learning_rates().tolist()
        marks = set(recorded_epochs(recipe.epochs).tolist())
        losses = log_p = torch.empty(0)
        for epoch in range(recipe.epochs + 1):
            if epoch % STRIDE == 0 and not bool(self._going.any()):
                break
            if not self._facts_a_step or recipe.stop_tau:
                losses, log_p = self._look(self._whole)
                # false for NaN
                memorised |= self._going & (log_p.amin(1) >= enough)
                self._going &= ~memorised
                finite = losses.isfinite()
            if epoch == recipe.epochs:
                break
            rate = rates[epoch]
            if self._facts_a_step:
                finite = self._train_batches(rate, epoch, recorded=epoch in marks)
            else:
                if epoch in marks:
                    self._curve.append((epoch, losses, self._share(self._whole, log_p)))
                self._step(self._going, rate)
            self._epochs += self._going
            diverged |= self._going & ~finite
            self._going &= ~diverged
        final, log_p = self._look(self._whole)
        sound = final.isfinite() & self._values.isfinite().all(1) & self._second.isfinite().all(1)
        diverged |= ~sound
        columns = (memorised, diverged, self._epochs, final, self._share(self._whole, log_p))
        self._write_back()
        rows = zip(*(column.tolist() for column in columns), strict=True)
        trainings: list[Training] = []
        # without the runs of zeros
        recorders = self._recorders()
        for i, (knows_all, broken, epochs, loss, share) in enumerate(
            list(rows)[: len(self._tasks)]
        ):
            status: Status = "memorised" if knows_all else "completed"
            history = recorders[i].history(epochs, loss, share)
            trainings.append(
                Training("diverged" if broken else status, epochs, loss, "padded", history)
            )
        return trainings

    def _recorders(self) -> list[Recorder]:
        """The curve of each run, those that have ended included: `Recorder.history` cuts it."""
        recorders = [Recorder(self._recipe.epochs) for _ in self._tasks]
        if self._curve:
            epochs, *columns = zip(*self._curve, strict=True)
            losses, shares = (torch.stack(column).double().T.tolist() for column in columns)
            for recorder, *values in zip(recorders, losses, shares, strict=False):
                for epoch, loss, share in zip(epochs, *values, strict=True):
                    recorder.note(epoch, loss, share)
        return recorders

    def _share(self, batch: Batch, log_p: Tensor) -> Tensor:
        """Share of the facts of each run that a batch has and knows, with p above one half."""
        is_fact = batch.row_weights[:, batch.first.shape[1] :, 0] > 0
        n_facts = self._whole.subjects.sum((1, 2)).clamp(min=1)
        return ((log_p > math.log(0.5)) & is_fact).sum(1) / n_facts

    def _train_batches(self, rate: float, epoch: int, *, recorded: bool) -> Tensor:
        """Do one epoch of batches; return a mask of the runs whose losses were finite."""
        size = self._facts_a_step
        # a run that has ended takes nothing from its generator
        going = self._going.tolist()
        orders = [
            task.rng.permutation(task.db.n_triples if goes else 0)
            for task, goes in zip(self._tasks, going[: len(self._tasks)], strict=True)
        ]
        finite = torch.ones_like(self._going)
        mean, known = (torch.zeros_like(self._decayed[0, :, 0]) for _ in range(2))
        for start in range(0, max(map(len, orders)), size):
            members = [order[start : start + size] for order in orders]
            batch = self._batch(members, 1 << (size - 1).bit_length())
            losses, log_p = self._look(batch)
            if recorded:
                mean += losses * batch.subjects.sum((1, 2))
                known += self._share(batch, log_p)
            moves = self._going.clone()
            for i, chosen in enumerate(members):
                moves[i] &= len(chosen) > 0
            finite &= losses.isfinite() | ~moves
            self._step(moves, rate)
        if recorded:
            self._curve.append((epoch, mean / self._whole.subjects.sum((1, 2)).clamp(min=1), known))
        return finite

    def _step(self, moves: Tensor, rate: float) -> None:
        """Do one step of Adam, or AdamW, for the runs in `moves`."""
        recipe, moving = self._recipe, moves[:, None]
        torch.where(moving, self._decayed * self._betas, self._decayed, out=self._decayed)
        unbias = (1 - self._decayed).to(self._values.dtype)
        gradient, values = self._gradient, self._values
        if recipe.optimizer == "adam":
            gradient = gradient + recipe.weight_decay * values
        else:
            values = values * (1 - rate * recipe.weight_decay)
        first = self._first.lerp(gradient, 0.1)
        second = recipe.beta2 * self._second + (1 - recipe.beta2) * gradient * gradient
        root = second.sqrt() / unbias[1].sqrt() + 1e-8
        values = values - rate / unbias[0] * first / root
        for kept, new in ((self._first, first), (self._second, second), (self._values, values)):
            torch.where(moving, new, kept, out=kept)

    def _batch(self, members: Sequence[NDArray[np.int64]], n: int) -> Batch:
        both = self._recipe.positions == "both"
        return make_batch(self._tasks, members, self._sizes, n, both=both, like=self._values)

    def _look(self, batch: Batch) -> tuple[Tensor, Tensor]:
        weights, grads = self._weights, self._grads
        return losses_and_gradients(weights, grads, batch, self._scale, self._columns)

    def gradients(self, i: int) -> dict[str, Tensor]:
        """Gradients of a run's full-batch loss, shaped like its layer's weights."""
        self._look(self._whole)
        found = {n: torch.zeros_like(p) for n, p in self._tasks[i].weights.items()}
        found["W_K"] = found["W_K"].transpose(1, 2)
        for name, _, rows, part in self._parts(i, self._grads):
            found[name][rows] = part
        return {**found, "W_K": found["W_K"].transpose(1, 2)}

    def _parts(
        self, i: int, where: Mapping[str, Tensor]
    ) -> Iterator[tuple[str, Tensor, Tensor | slice, Tensor]]:
        """Name and weight of a layer's parameters, rows of it, and the tensor that holds them."""
        task = self._tasks[i]
        for name, weight in task.weights.items():
            if name == "W_K":
                # keys are x K here
                weight = weight.transpose(1, 2)
            parts: dict[str, Tensor | slice] = {name: slice(None)}
            if name == "W_E":
                parts = {"W_E": torch.from_numpy(task.active), "idle": torch.from_numpy(task.idle)}
            for part, rows in parts.items():
                inside = (i, *(slice(n) for n in weight[rows].shape))
                yield name, weight, rows, where[part][inside]

    def _write_back(self) -> None:
        for i in range(len(self._tasks)):
            for _, weight, rows, part in self._parts(i, self._weights):
                weight[rows] = part
