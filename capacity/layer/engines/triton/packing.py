"""Runs of one padded shape, as the arrays of the kernel. No triton in here.

Whatever the number of runs, a group is a fixed number of array operations, and moves to the device
in two copies: places of the weights, and facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

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
# a pointer at a multiple of 16 bytes is compiled to wider loads than another one
ALIGNED = 4


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
        Numbers of facts.
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
        databases: Sequence[Database],
        of: Integers,
        shape: Shape,
        *,
        both: bool,
    ) -> None:
        facts = Facts.of(databases, both=both)
        sizes = Sizes.of(packed).some(members)
        self.shape, self.n_facts = shape, facts.n_facts[of]
        n_rows, n_active = int(facts.n_rows.max()), int(facts.n_active.max())
        self.lengths = {
            "n_weights": shape.n_weights, "n_rows": n_rows, "n_active": n_active,
            "n_targets": int(facts.arrays["targets"].lengths.max()),
        }  # fmt: skip
        self.n_scratch = 3 * n_active * shape.d_heads + n_rows * (
            4 * shape.d_heads + 2 * shape.d_model
        )
        rows, active = facts.n_rows[of], facts.n_active[of]
        table = [rows, rows - self.n_facts, active, sizes.tokens, sizes.d_model]
        arrays = {name: ragged.padded()[of] for name, ragged in facts.arrays.items()}
        arrays |= {"sizes": np.stack(table, axis=1), "scales": sizes.scales}
        device = packed.values.device
        self.facts = moved(arrays, device)
        self._layers, self._slots = places(
            packed.starts[members], sizes, shape, facts.numbers, of, device
        )
        self.values = packed.values.new_zeros(len(members), shape.n_weights)
        self.values.view(-1)[self._slots] = packed.values[self._layers]

    def unpack(self, rows: Tensor, into: Tensor) -> None:
        """Copy numbers of the runs, laid out like `values`, to where their layers' weights are."""
        into[self._layers] = rows.view(-1)[self._slots]


def moved(arrays: dict[str, NDArray[Any]], device: torch.device) -> dict[str, Tensor]:
    """Copy arrays to a device together, integers as int32 and other numbers as float32."""
    narrow = {
        name: np.ascontiguousarray(array, np.int32 if array.dtype.kind == "i" else np.float32)
        for name, array in arrays.items()
    }
    starts = np.cumsum([0, *(-(-a.size // ALIGNED) * ALIGNED for a in narrow.values())]).tolist()
    whole = np.zeros(starts[-1], np.int32)
    for array, start in zip(narrow.values(), starts, strict=False):
        whole[start : start + array.size] = array.view(np.int32).ravel()
    there = torch.from_numpy(whole).to(device)
    return {
        name: there[start : start + array.size]
        .view(torch.from_numpy(array[:0]).dtype)
        .view(array.shape)
        for (name, array), start in zip(narrow.items(), starts, strict=False)
    }


def places(
    starts: Integers,
    sizes: Sizes,
    shape: Shape,
    numbers: Ragged,
    of: Integers,
    device: torch.device,
) -> tuple[Tensor, Tensor]:
    """Find the places of weights in the layers, and in the values of the kernel.

    Each of the six weights of a run is a box of three axes whose numbers are consecutive in its
    layer, and which has a stride for each axis in the kernel's values, where tokens have other
    numbers. The places are counted out on the device.

    Parameters
    ----------
    starts : (runs,)
        Where each layer begins.
    sizes, shape
        Of the runs, and that of the kernel.
    numbers : Ragged
        Number of each token of each database.
    of : (runs,)
        Number of each run's database.
    device : torch.device
        Where the places are needed.

    Returns
    -------
    layers, slots : int64 tensors, shape (all weights of the runs,)
        Place of a number in the layers, and in the values of all runs.
    """
    n_runs = len(starts)
    d, heads, one = sizes.d_model, sizes.n_heads, np.ones(n_runs, np.int64)
    tokens, width, e = shape.tokens, shape.d_heads, shape.d_head
    at_heads, matrix = 2 * tokens * shape.d_model, shape.d_model * width
    # sizes of the three axes, their strides in the kernel's values, and where these begin
    boxes = [
        ((one, sizes.tokens, d), (0, shape.d_model, 1), 0),
        ((one, d, sizes.tokens), (0, tokens, 1), tokens * shape.d_model),
        ((heads, d, sizes.d_head_qk), (e, width, 1), at_heads),
        ((heads, sizes.d_head_qk, d), (e, 1, width), at_heads + matrix),
        ((heads, d, sizes.d_head_vo), (e, width, 1), at_heads + 2 * matrix),
        ((heads, sizes.d_head_vo, d), (e, 1, width), at_heads + 3 * matrix),
    ]
    axes = np.array([box for box, _, _ in boxes])
    lengths = axes.prod(axis=1)
    begins = np.arange(n_runs) * shape.n_weights
    columns = {
        "size_1": axes[:, 1], "size_2": axes[:, 2],
        **{
            f"stride_{axis}": np.repeat([strides[axis] for _, strides, _ in boxes], n_runs)
            for axis in range(3)
        },
        # of its own weights, counted on
        "counted": np.cumsum(lengths) - lengths.ravel(),
        "layer": starts + np.cumsum(lengths, axis=0) - lengths,
        "slot": np.array([begins + at for _, _, at in boxes]),
        "numbers": np.tile(numbers.starts[of], len(boxes)), "lengths": lengths,
    }  # fmt: skip
    flat = [np.asarray(column).ravel() for column in columns.values()]
    there = torch.from_numpy(np.concatenate([*flat, numbers.values])).to(device)
    *parts, renumbered = there.split([*map(len, flat), len(numbers.values)])
    part = dict(zip(columns, parts, strict=True))
    n_weights, (n_E, n_U) = int(lengths.sum()), lengths[:2].sum(axis=1).tolist()
    box = torch.repeat_interleave(part["lengths"], output_size=n_weights)
    within = torch.arange(n_weights, device=device) - part["counted"][box]
    size_1, size_2 = part["size_1"][box], part["size_2"][box]
    rest, third = within // size_2, within % size_2
    first, second = rest // size_1, rest % size_1
    # the tokens of W_E, and then of W_U
    of_E, of_U = slice(n_E), slice(n_E, n_E + n_U)
    for coordinate, some in ((second, of_E), (third, of_U)):
        coordinate[some] = renumbered[part["numbers"][box[some]] + coordinate[some]]
    slots = part["slot"][box]
    for axis, coordinate in enumerate((first, second, third)):
        slots += coordinate * part[f"stride_{axis}"][box]
    return part["layer"][box] + within, slots
