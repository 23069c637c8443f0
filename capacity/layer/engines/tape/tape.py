"""A tape: the instructions that compute a decoder's logits, and their gradients.

A part of a decoder calls the methods of `Tape` in the order of its forward pass. Each allocates a
buffer for its result and one for the result's gradient, and records the instruction, and the one
of the backward pass before those that are there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capacity.display import briefly_shown
from capacity.layer.engines.tape import execute as do
from capacity.layer.engines.tape.pointwise import GELU, RELU, SILU

_KINDS = {"relu": RELU, "gelu": GELU, "silu": SILU}
# numbers in the widest vector, of float32
LANES = 16


def padded(n: int) -> int:
    """Round a number up to whole vectors."""
    return -(-n // LANES) * LANES


@briefly_shown
@dataclass(frozen=True)
class Buffer:
    """Features of all rows: the places of their values and of their gradients."""

    at: int
    gradient: int
    features: int

    def part(self, start: int, n: int, rows: int) -> Buffer:
        """Return n of the features, from one on."""
        return Buffer(self.at + start * rows, self.gradient + start * rows, n)


@briefly_shown
@dataclass(frozen=True)
class Weight:
    """Places of a weight and of its gradient, and its shape there."""

    at: int
    gradient: int
    shape: tuple[int, ...]


def layout_of(weights: Mapping[str, NDArray[Any]]) -> tuple[dict[str, Weight], int]:
    """Places of all weights in one array, each from a whole vector on, and its size."""
    shapes = {name: with_heads_exchanged(name, array).shape for name, array in weights.items()}
    sizes = [padded(math.prod(shape)) for shape in shapes.values()]
    size = sum(sizes)
    starts = np.cumsum([0, *sizes]).tolist()
    return {
        name: Weight(at, size + at, shape)
        for (name, shape), at in zip(shapes.items(), starts, strict=False)
    }, size


def with_heads_exchanged(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Turn (heads, d_model, size) of queries and values into (d_model, heads, size), or back."""
    return array.transpose(1, 0, 2) if name.endswith((".W_Q", ".W_V")) else array


@briefly_shown
@dataclass
class Tape:
    """Instructions for rows of numbers, and the places that they use.

    Parameters
    ----------
    rows : int
        Number of rows, padded.
    positions : (rows,) ndarray of int64
        Position of each row in its sentence.
    indices : dict of str to int
        Places of the arrays that rows look up: "token", "position" and "source".
    weights : mapping of str to Weight
        All weights.
    size : int
        Number of entries of the array that are used.
    """

    rows: int
    positions: NDArray[np.int64]
    indices: Mapping[str, int]
    weights: Mapping[str, Weight]
    size: int
    prefix: str = ""
    forward: list[Sequence[int]] = field(default_factory=list)
    backward: list[Sequence[int]] = field(default_factory=list)
    constants: dict[int, NDArray[np.float64]] = field(default_factory=dict)
    cleared: list[tuple[int, int]] = field(default_factory=list)

    def place(self, n: int) -> int:
        """Allocate entries, whole vectors of them."""
        at, self.size = self.size, self.size + padded(n)
        return at

    def constant(self, values: Any) -> int:
        """Allocate numbers that stay."""
        array = np.atleast_1d(np.asarray(values, np.float64)).ravel()
        at = self.place(len(array))
        self.constants[at] = array
        return at

    def buffer(self, features: int) -> Buffer:
        """Allocate values and gradients of some features, which begin each epoch as zeros."""
        n = features * self.rows
        at = self.place(2 * n)
        self.clear(at, 2 * n)
        return Buffer(at, at + n, features)

    def clear(self, at: int, n: int) -> None:
        """Set entries to zero before each forward pass."""
        last = self.cleared[-1] if self.cleared else (0, -1)
        if sum(last) == at:
            self.cleared[-1] = (last[0], last[1] + n)
        else:
            self.cleared.append((at, n))

    def __getitem__(self, name: str) -> Weight:
        return self.weights[self.prefix + name]

    def __contains__(self, name: str) -> bool:
        return self.prefix + name in self.weights

    def record(self, forward: Sequence[int], *backward: Sequence[int]) -> None:
        """Append an instruction, and put those of its backward pass before all others."""
        self.forward.append(forward)
        self.backward[:0] = backward

    # ---- operations -------------------------------------------------------------------------

    def linear(self, x: Buffer, weight: Weight, outputs: int, strides: tuple[int, int]) -> Buffer:
        """Multiply by a matrix whose entry (input k, output m) is at ``k * sk + m * sm``."""
        y, (sk, sm) = self.buffer(outputs), strides
        K, M = x.features, outputs
        self.record(
            (do.MATMUL, y.at, x.at, weight.at, K, M, sk, sm),
            (do.MATMUL, x.gradient, y.gradient, weight.at, M, K, sm, sk),
            (do.OUTER, weight.gradient, x.at, y.gradient, K, M, sk, sm),
        )
        return y

    def product(self, x: Buffer, weight: Weight) -> Buffer:
        """Multiply by a matrix of the shape (inputs, outputs)."""
        return self.linear(x, weight, weight.shape[1], (weight.shape[1], 1))

    def logits(self, x: Buffer, weight: Weight, outputs: int, strides: tuple[int, int]) -> Buffer:
        """Multiply as `linear` does; the errors of logits take the place of the logits."""
        n = outputs * self.rows
        at = self.place(n)
        self.clear(at, n)
        z, K, (sk, sm) = Buffer(at, at, outputs), x.features, strides
        self.record(
            (do.MATMUL, z.at, x.at, weight.at, K, outputs, sk, sm),
            (do.MATMUL, x.gradient, z.at, weight.at, outputs, K, sm, sk),
            (do.OUTER, weight.gradient, x.at, z.at, K, outputs, sk, sm),
        )
        return z

    def add_bias(self, x: Buffer, bias: Weight) -> None:
        """Add a number to each feature, in place."""
        self.record(
            (do.ADD_BIAS, x.at, bias.at, x.features),
            (do.ADD_SUMS, bias.gradient, x.gradient, x.features),
        )

    def add(self, *parts: Buffer) -> Buffer:
        """Sum of buffers."""
        y = self.buffer(parts[0].features)
        for x in parts:
            self.record(
                (do.ADD, y.at, x.at, x.features), (do.ADD, x.gradient, y.gradient, x.features)
            )
        return y

    def multiply(self, x: Buffer, z: Buffer) -> Buffer:
        """Product of two buffers, entry by entry."""
        y, n = self.buffer(x.features), x.features
        self.record(
            (do.MULTIPLY_ADD, y.at, x.at, z.at, n),
            (do.MULTIPLY_ADD, x.gradient, y.gradient, z.at, n),
            (do.MULTIPLY_ADD, z.gradient, y.gradient, x.at, n),
        )
        return y

    def scale(self, x: Buffer, gain: Weight) -> Buffer:
        """Multiply each feature by a number."""
        y, n = self.buffer(x.features), x.features
        self.record(
            (do.SCALE_ROWS, y.at, x.at, gain.at, n),
            (do.SCALE_ROWS, x.gradient, y.gradient, gain.at, n),
            (do.ADD_DOTS, gain.gradient, y.gradient, x.at, n),
        )
        return y

    def embed(self, weight: Weight, index: str) -> Buffer:
        """Look up a row of a matrix for each row."""
        features = weight.shape[1]
        y, at = self.buffer(features), self.indices[index]
        self.record(
            (do.EMBED, y.at, weight.at, at, features),
            (do.EMBED_BACK, weight.gradient, y.gradient, at, features),
        )
        return y

    def of_source(self, x: Buffer) -> Buffer:
        """Features at the row of a pair's subject."""
        y, at, n = self.buffer(x.features), self.indices["source"], x.features
        self.record((do.GATHER, y.at, x.at, at, n), (do.SCATTER, x.gradient, y.gradient, at, n))
        return y

    def attend(self, q: Buffer, k: Buffer, v: Buffer, heads: int, scale: float) -> Buffer:
        """Outputs of all heads, side by side, whose queries, keys and values are."""
        ks, vs = self.of_source(k), self.of_source(v)
        z, gates = self.buffer(v.features), self.place(heads * self.rows)
        factor = self.constant(scale)
        qk, vo = q.features // heads, v.features // heads
        for h in range(heads):
            qs, kh, ksh = (x.part(h * qk, qk, self.rows) for x in (q, k, ks))
            vh, vsh, zh = (x.part(h * vo, vo, self.rows) for x in (v, vs, z))
            gate = gates + h * self.rows
            self.record(
                (do.ATTEND, zh.at, gate, qs.at, kh.at, ksh.at, vh.at, vsh.at, qk, vo, factor),
                (do.ATTEND_BACK, zh.gradient, gate, qs.at, kh.at, ksh.at, vh.at, vsh.at,
                 qs.gradient, kh.gradient, ksh.gradient, vh.gradient, vsh.gradient, qk, vo, factor),
            )  # fmt: skip
        return z

    def normalise(self, x: Buffer, *, centred: bool) -> Buffer:
        """Divide each row by its root mean square, less its mean before if `centred`."""
        y, inverse, n = self.buffer(x.features), self.place(self.rows), x.features
        self.record(
            (do.NORMALISE, y.at, inverse, x.at, n, int(centred)),
            (do.NORMALISE_BACK, x.gradient, y.at, inverse, y.gradient, n, int(centred)),
        )
        return y

    def activate(self, x: Buffer, kind: str) -> Buffer:
        """Apply an activation function: relu, gelu or silu."""
        y, slope, n = self.buffer(x.features), self.place(x.features * self.rows), x.features
        self.record(
            (do.ACTIVATE, y.at, slope, x.at, n, _KINDS[kind]),
            (do.MULTIPLY_ADD, x.gradient, y.gradient, slope, n),
        )
        return y

    def rotate(self, x: Buffer, heads: int, angles: NDArray[np.float64]) -> Buffer:
        """Turn pairs of dimensions (i, i + size / 2) of each head by angles, (size / 2, rows)."""
        y, size = self.buffer(x.features), x.features // heads
        c, s = self.constant(np.cos(angles)), self.constant(np.sin(angles))
        self.record(
            (do.ROTATE, y.at, x.at, heads, size, c, s, 1),
            (do.ROTATE, x.gradient, y.gradient, heads, size, c, s, -1),
        )
        return y


def instructions(rows: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """Instructions as an array of whole rows."""
    array = np.zeros((len(rows), do.WIDTH), np.int64)
    for i, row in enumerate(rows):
        array[i, : len(row)] = row
    return array
