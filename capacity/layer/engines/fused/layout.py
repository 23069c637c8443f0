"""`Layout`: the place of each part of a layer's weights in the flat arrays of the kernels."""

from __future__ import annotations

import math
from collections.abc import Collection
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capacity.layer.engines.fused import buffers
from capacity.layer.engines.simd import ROW
from capacity.layer.model.config import LayerConfig

Array = NDArray[Any]

# embeddings of the tokens that are neither subject nor predicate, at the end
IDLE = "idle"


class Layout:
    """Parts of a flat array, each from a whole vector on, padded with zeros to rows of 8.

    All layers are padded alike, so that a kernel of more dimensions than a layer has can train it.

    Parameters
    ----------
    config : LayerConfig
        A plain layer.
    n_active, n_idle : int
        Numbers of tokens that are a subject or a predicate, and of the others.
    lanes : int
        Numbers in a vector.
    """

    def __init__(self, config: LayerConfig, n_active: int, n_idle: int, lanes: int) -> None:
        d, heads, n_tokens = config.d_model, config.n_heads, n_active + n_idle
        self.width = padded(n_tokens, lanes)
        # in the order of `buffers.Weights`
        self._shapes = {
            "W_E": (n_active, ROW), "W_U": (ROW, self.width), "W_Q": (heads, ROW, ROW),
            "W_K": (heads, ROW, ROW), "W_V": (heads, ROW, ROW),
            "W_O": (heads, config.d_head_vo, ROW), IDLE: (n_idle, ROW),
        }  # fmt: skip
        qk, vo = config.d_head_qk, config.d_head_vo
        # of these, rows and columns that aren't padding
        self._used = {
            "W_E": (n_active, d), "W_U": (d, n_tokens), "W_Q": (d, qk), "W_K": (d, qk),
            "W_V": (d, vo), "W_O": (vo, d), IDLE: (n_idle, d),
        }  # fmt: skip
        sizes = [padded(math.prod(shape), lanes) for shape in self._shapes.values()]
        ends = [0, *np.cumsum(sizes).tolist()]
        self._spans = dict(zip(self._shapes, pairwise(ends), strict=True))
        self.size = ends[-1]

    def views(self, flat: Array) -> buffers.Weights:
        """Views of the parts that the kernels know, flat, without what pads them."""
        return buffers.Weights(*(self._part(flat, name) for name in self._shapes if name != IDLE))

    def shaped(self, flat: Array) -> dict[str, Array]:
        """Views of all parts, shaped as in `LayerConfig.shapes`, without padding."""
        views = {
            name: self._part(flat, name).reshape(shape)[..., : used[0], : used[1]]
            for (name, shape), used in zip(self._shapes.items(), self._used.values(), strict=True)
        }
        views["W_K"] = views["W_K"].swapaxes(1, 2)
        return views

    def moving(self, still: Collection[str]) -> Array:
        """Starts and ends of what isn't `still`, shape (n, 2); spans that meet are one.

        Of W_U, the largest part, rows that are padding stay as well.
        """
        joined: list[tuple[int, int]] = []
        for name, (start, end) in self._spans.items():
            if name in still:
                continue
            if name == "W_U":
                end = start + self._used[name][0] * self.width
            if joined and joined[-1][1] == start:
                start, _ = joined.pop()
            joined.append((start, end))
        return np.array(joined, dtype=np.int64).reshape(-1, 2)

    def _part(self, flat: Array, name: str) -> Array:
        start, _ = self._spans[name]
        return flat[start : start + math.prod(self._shapes[name])]


def padded(n: int, multiple: int) -> int:
    """Round up to a multiple."""
    return -(-n // multiple) * multiple
