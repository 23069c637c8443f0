"""Runs of one padded shape, as the arrays of the kernel. No triton in here.

Whatever the number of runs, a group is a fixed number of operations, most of them on the device:
to it move the facts, sizes, and a few numbers for each weight of each run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from capacity.database.facts import Database
from capacity.layer.engines.triton.facts import Facts, Ragged
from capacity.layer.packed import PackedLayers

Integers = NDArray[np.int64]

# least sizes that are compiled: below them a tile has fewer numbers than a program has threads
LEAST = (64, 8, 4, 8)


class Shape(NamedTuple):
    """Sizes that are compiled into the kernel: powers of two that hold those of its runs.

    Attributes
    ----------
    tokens, d_model, n_heads : int
        Of the database and the layer.
    d_head : int
        The larger of d_head_qk and d_head_vo.
    """

    tokens: int
    d_model: int
    n_heads: int
    d_head: int

    @property
    def d_heads(self) -> int:
        """Width of the heads side by side."""
        return self.n_heads * self.d_head

    @property
    def n_weights(self) -> int:
        """Numbers in a run's part of the weights: W_E, W_U, then W_Q, W_K, W_V and W_O."""
        return 2 * self.tokens * self.d_model + 4 * self.d_model * self.d_heads


@dataclass(frozen=True)
class Sizes:
    """Sizes of runs, each of shape (runs,).

    Attributes
    ----------
    tokens, d_model, n_heads, d_head_qk, d_head_vo : ndarray of int64
        Of databases and layers.
    scales : ndarray of float32
        Factors of the attention logits.
    """

    tokens: Integers
    d_model: Integers
    n_heads: Integers
    d_head_qk: Integers
    d_head_vo: Integers
    scales: NDArray[np.float32]

    @classmethod
    def of(cls, packed: PackedLayers) -> Sizes:
        """Look up the sizes of layers."""
        sizes = [(c.d_model, c.n_heads, c.d_head_qk, c.d_head_vo) for c in packed.configs]
        scales = np.array([c.attention_scale for c in packed.configs], np.float32)
        return cls(np.array(packed.d_vocabs), *np.array(sizes).T, scales=scales)

    def shapes(self) -> tuple[list[Shape], Integers]:
        """Return the padded shapes that there are, and the number of each run's."""
        heads = np.maximum(self.d_head_qk, self.d_head_vo)
        sizes = np.stack([self.tokens, self.d_model, self.n_heads, heads], axis=1)
        powers = 1 << np.arange(32)
        rounded = np.maximum(powers[np.searchsorted(powers, sizes)], LEAST)
        found, number = np.unique(rounded, axis=0, return_inverse=True)
        return [Shape(*row) for row in found.tolist()], number.ravel()

    def boxes(self) -> Integers:
        """Return the sizes of the weights W_E, W_U, W_Q, W_K, W_V and W_O, as boxes of three axes.

        Shape (6, 3, runs); the first axis of W_E and of W_U is 1.
        """
        n, d, heads, qk, vo = (
            self.tokens, self.d_model, self.n_heads, self.d_head_qk, self.d_head_vo,
        )  # fmt: skip
        one = np.ones_like(n)
        return np.array([
            (one, n, d), (one, d, n), (heads, d, qk), (heads, qk, d), (heads, d, vo),
            (heads, vo, d),
        ])  # fmt: skip

    def some(self, members: Integers) -> Sizes:
        """Return the sizes of some runs."""
        return Sizes(*(getattr(self, name)[members] for name in self.__dataclass_fields__))


class Group:
    """Runs of one shape, in tensors on the device of their layers.

    Parameters
    ----------
    packed : PackedLayers
        Layers, some of which are these runs.
    members : (runs,)
        Numbers of their layers.
    sizes : Sizes
        Those of the runs.
    databases : sequence of Database
        Databases, each once.
    of : (runs,)
        Number of each run's database.
    shape : Shape
        The shape.
    both : bool
        True if predicates are learnt too.

    Attributes
    ----------
    values : (runs, n_weights)
        Weights.
    n_facts : (runs,)
        Numbers of facts, on the host.
    facts : dict of str to tensor
        Facts and sizes, by the names of the kernel's arguments.
    lengths : dict of str to int
        Lengths of a run's part of the tensors, by the names of the kernel's arguments.
    n_scratch : int
        Numbers that the stages of an epoch hand on, for each run.
    """

    def __init__(
        self,
        packed: PackedLayers,
        members: Integers,
        sizes: Sizes,
        databases: Sequence[Database],
        of: Integers,
        shape: Shape,
        *,
        both: bool,
    ) -> None:
        device = packed.values.device
        facts = Facts.of(databases, device, both=both)
        self.shape = shape
        self.n_facts: Integers = np.array([db.n_triples for db in databases])[of]
        widest = [facts.n_rows, facts.n_active, facts.arrays["targets"].lengths]
        n_rows, n_active, n_targets = torch.stack(widest).amax(dim=1).tolist()
        self.lengths = {
            "n_weights": shape.n_weights, "n_rows": n_rows, "n_active": n_active,
            "n_targets": n_targets,
        }  # fmt: skip
        self.n_scratch = 3 * n_active * shape.d_heads + n_rows * (
            4 * shape.d_heads + 2 * shape.d_model
        )
        table = places_table(packed.starts[members], sizes, shape)
        there = torch.from_numpy(np.concatenate([of, sizes.tokens, sizes.d_model, table.ravel()]))
        of_run, tokens, d_model, *flat = there.to(device).split(
            [*[len(of)] * 3, *[table.shape[1]] * len(table)]
        )
        rows, active = facts.n_rows[of_run], facts.n_active[of_run]
        columns = [rows, rows - facts.n_facts[of_run], active, tokens, d_model]
        widths = {"targets": n_targets, "target_starts": n_rows + 1,
                  "subject_starts": n_active + 1, "predicate_starts": n_active + 1}  # fmt: skip
        self.facts = {
            name: _narrow(ragged.padded(widths.get(name, n_rows)))[of_run]
            for name, ragged in facts.arrays.items()
        }
        self.facts["sizes"] = torch.stack(columns, dim=1).int()
        self.facts["scales"] = torch.from_numpy(sizes.scales).to(device)
        counts = [int(n) for n in sizes.boxes().prod(axis=1).sum(axis=1)]
        self._layers, self._slots = places(dict(zip(PLACES, flat, strict=True)), counts,
                                           facts.numbers, of_run)  # fmt: skip
        self.values = packed.values.new_zeros(len(members), shape.n_weights)
        self.values.view(-1)[self._slots] = packed.values[self._layers]

    def unpack(self, rows: Tensor, into: Tensor) -> None:
        """Copy numbers of the runs, laid out like `values`, to where their layers' weights are."""
        into[self._layers] = rows.view(-1)[self._slots]


def _narrow(values: Tensor) -> Tensor:
    return values if values.is_floating_point() else values.int()


# columns of the table of places: for each weight of each run, its numbers; of its box the last two
# sizes; the strides of its axes in the kernel's values; where it begins among all weights of this
# name, in its layers, and in the kernel's values
PLACES = ("lengths", "size_1", "size_2", "stride_0", "stride_1", "stride_2", "counted", "layer",
          "slot")  # fmt: skip


def places_table(starts: Integers, sizes: Sizes, shape: Shape) -> Integers:
    """List what the places of weights are counted from (`PLACES`).

    Each of the six weights of a run is a box of three axes whose numbers are consecutive in its
    layer, and which has a stride for each axis in the kernel's values.

    Parameters
    ----------
    starts : (runs,)
        Where each layer begins.
    sizes, shape
        Of the runs, and that of the kernel.

    Returns
    -------
    ndarray of int64, shape (9, 6 runs)
        Weight by weight, W_E of all runs first.
    """
    n_runs, tokens, width, e = len(starts), shape.tokens, shape.d_heads, shape.d_head
    at_heads, matrix = 2 * tokens * shape.d_model, shape.d_model * width
    strides = [(0, shape.d_model, 1), (0, tokens, 1), *[(e, width, 1), (e, 1, width)] * 2]
    begins = [0, tokens * shape.d_model, *(at_heads + i * matrix for i in range(4))]
    boxes = sizes.boxes()
    lengths = boxes.prod(axis=1)
    columns = [
        lengths, boxes[:, 1], boxes[:, 2],
        *(np.repeat([[stride[axis]] for stride in strides], n_runs, axis=1) for axis in range(3)),
        np.cumsum(lengths).reshape(lengths.shape) - lengths,
        starts + np.cumsum(lengths, axis=0) - lengths,
        np.array(begins)[:, None] + np.arange(n_runs) * shape.n_weights,
    ]  # fmt: skip
    return np.stack([column.ravel() for column in columns])


def places(
    table: Mapping[str, Tensor], counts: Sequence[int], numbers: Ragged, of: Tensor
) -> tuple[Tensor, Tensor]:
    """Find the places of weights in the layers, and in the values of the kernel.

    Parameters
    ----------
    table : mapping of str to tensor
        Columns of `places_table`, on the device.
    counts : sequence of int
        Numbers in each of the six weights, of all runs together.
    numbers : Ragged
        Number of each token of each database.
    of : (runs,)
        Number of each run's database.

    Returns
    -------
    layers, slots : int64 tensors, shape (all weights of the runs,)
        Place of a number in the layers, and in the values of all runs.
    """
    total, device = sum(counts), of.device
    lengths = table["lengths"]
    box = torch.arange(len(lengths), device=device).repeat_interleave(lengths, output_size=total)
    within = torch.arange(total, device=device) - table["counted"][box]
    size_1, size_2 = table["size_1"][box], table["size_2"][box]
    rest, third = within // size_2, within % size_2
    first, second = rest // size_1, rest % size_1
    # tokens have other numbers in the kernel: the rows of W_E, and the columns of W_U
    first_token = numbers.starts[of]
    of_E, of_U = slice(counts[0]), slice(counts[0], counts[0] + counts[1])
    for coordinate, some in ((second, of_E), (third, of_U)):
        token = first_token[box[some] % len(of)] + coordinate[some]
        coordinate[some] = numbers.values[token]
    slots = table["slot"][box]
    for axis, coordinate in enumerate((first, second, third)):
        slots += coordinate * table[f"stride_{axis}"][box]
    return table["layer"][box] + within, slots
