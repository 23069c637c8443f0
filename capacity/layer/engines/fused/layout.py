"""`Layout`: the place of each part of a layer's weights in the flat arrays of the kernels."""

from __future__ import annotations

import math
from collections.abc import Collection
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capacity.layer.config import LayerConfig
from capacity.layer.engines.fused import buffers
from capacity.layer.engines.simd import ROW

Array = NDArray[Any]

# embeddings of the tokens that are neither subject nor predicate, at the end
IDLE = "idle"


class Layout:
    """Parts of a flat array, each from a whole vector on, padded with zeros.

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
            "W_E": (n_active, ROW), "W_U": (d, self.width), "W_Q": (heads, d, ROW),
            "W_K": (heads, d, ROW), "W_V": (heads, d, ROW), "W_O": (heads, config.d_head_vo, ROW),
            IDLE: (n_idle, ROW),
        }  # fmt: skip
        self._columns = {
            "W_E": d, "W_U": n_tokens, "W_Q": config.d_head_qk, "W_K": config.d_head_qk,
            "W_V": config.d_head_vo, "W_O": d, IDLE: d,
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
            name: self._part(flat, name).reshape(shape)[..., : self._columns[name]]
            for name, shape in self._shapes.items()
        }
        views["W_K"] = views["W_K"].swapaxes(1, 2)
        return views

    def moving(self, still: Collection[str]) -> Array:
        """Starts and ends of what isn't `still`, shape (n, 2); spans that meet are one."""
        joined: list[tuple[int, int]] = []
        for name, (start, end) in self._spans.items():
            if name in still:
                continue
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
