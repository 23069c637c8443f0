"""Runs of one padded shape, as the arrays of the kernel. No triton in here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from capacity.database.facts import Database
from capacity.layer.config import LayerConfig
from capacity.layer.model import AttentionLayer

Array = NDArray[Any]
Integers = NDArray[np.int32]


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

    @classmethod
    def of(cls, layer: LayerConfig, n_tokens: int) -> Shape:
        """Round the sizes of a run up."""
        sizes = (n_tokens, layer.d_model, layer.n_heads, max(layer.d_head_qk, layer.d_head_vo))
        rounded = (1 << (size - 1).bit_length() for size in sizes)
        return cls(*map(max, zip(rounded, LEAST, strict=True)))

    @property
    def d_heads(self) -> int:
        """Width of the heads side by side."""
        return self.n_heads * self.d_head

    @property
    def n_weights(self) -> int:
        """Numbers in a run's part of the weights: W_E, W_U, then W_Q, W_K, W_V and W_O."""
        return 2 * self.tokens * self.d_model + 4 * self.d_model * self.d_heads


@dataclass(frozen=True)
class PackedRun:
    """One run: its layer, its facts as rows, and the number of each token.

    Tokens that are a subject or a predicate come first, those with the most rows before others, so
    that the tokens of a block have similar numbers of rows.

    Attributes
    ----------
    order : (d_vocab,)
        Token of each number.
    subjects, predicates : (n_rows,)
        Numbers of the tokens of each row: first one row a distinct subject, if predicates are
        learnt, which has the subject twice; then the facts.
    weights : (n_rows,)
        Weight of each row in the loss.
    n_targets : (n_rows,)
        Number of tokens that each row must predict, all alike.
    targets : (n_facts,) or (2 n_facts,)
        Numbers of these tokens, row by row.
    """

    layer: AttentionLayer
    order: Integers
    n_active: int
    n_facts: int
    subjects: Integers
    predicates: Integers
    weights: NDArray[np.float32]
    n_targets: Integers
    targets: Integers

    @classmethod
    def of(cls, layer: AttentionLayer, db: Database, *, both: bool) -> PackedRun:
        """Number tokens and rows; with `both`, predicates are learnt too."""
        k, q, v = db.token_triples.T.astype(np.int64)
        n = len(k)
        distinct = np.unique(k) if both else k[:0]
        subjects, predicates = np.concatenate([distinct, k]), np.concatenate([distinct, q])
        counts = np.bincount(subjects, minlength=db.n_tokens)
        counts += np.bincount(predicates, minlength=db.n_tokens)
        order = np.argsort(-counts, kind="stable")
        number = np.empty_like(order)
        number[order] = np.arange(len(order))
        # a subject's row must predict the predicates of its facts, which differ
        n_targets = np.concatenate([np.bincount(k)[distinct], np.ones(n, dtype=np.int64)])
        after = q[np.argsort(k, kind="stable")] if both else q[:0]
        return cls(
            layer=layer,
            order=order.astype(np.int32),
            n_active=int((counts > 0).sum()),
            n_facts=n,
            subjects=number[subjects].astype(np.int32),
            predicates=number[predicates].astype(np.int32),
            weights=((0.5 if both else 1.0) / n * n_targets).astype(np.float32),
            n_targets=n_targets.astype(np.int32),
            targets=number[np.concatenate([after, v])].astype(np.int32),
        )

    @property
    def sizes(self) -> tuple[int, int, int, int, int]:
        """The run's row in the kernel's table of sizes."""
        n_rows, d_model = len(self.subjects), self.layer.config.d_model
        return n_rows, n_rows - self.n_facts, self.n_active, len(self.order), d_model


# axes of the weights, from those of `LayerConfig.shapes` to those of the kernel
_AXES = {
    "W_E": (0, 1), "W_U": (0, 1), "W_Q": (1, 0, 2), "W_K": (2, 0, 1), "W_V": (1, 0, 2),
    "W_O": (2, 0, 1),
}  # fmt: skip


class Group:
    """Runs of one shape, in tensors on the device of their layers.

    Attributes
    ----------
    values : (runs, n_weights)
        Weights.
    facts : dict of str to tensor
        Facts and sizes, by the names of the kernel's arguments.
    lengths : dict of str to int
        Lengths of a run's part of the tensors, by the names of the kernel's arguments.
    n_scratch : int
        Numbers that the stages of an epoch hand on, for each run.
    """

    def __init__(self, runs: Sequence[PackedRun], shape: Shape) -> None:
        self.runs, self.shape = runs, shape
        self.device = runs[0].layer.W_E.device
        n_rows, n_active = (max(run.sizes[i] for run in runs) for i in (0, 2))
        self.lengths = {
            "n_weights": shape.n_weights, "n_rows": n_rows, "n_active": n_active,
            "n_targets": max(len(run.targets) for run in runs),
        }  # fmt: skip
        self.n_scratch = 3 * n_active * shape.d_heads + n_rows * (
            4 * shape.d_heads + 2 * shape.d_model
        )
        values = np.zeros((len(runs), shape.n_weights), dtype=np.float32)
        for run, row in zip(runs, values, strict=True):
            weights = {name: p.detach().cpu().numpy() for name, p in run.layer.named_parameters()}
            for name, part in self._parts(run, row).items():
                part[...] = _numbered(run, name, weights[name])
        self.values = torch.from_numpy(values).to(self.device)
        self.facts = {
            name: torch.from_numpy(array).to(self.device)
            for name, array in _facts(runs, self.lengths).items()
        }

    def weights_of(self, i: int, rows: Tensor) -> dict[str, NDArray[np.float32]]:
        """Return what some numbers of a run's weights are, shaped like its layer's parameters.

        Parameters
        ----------
        i : int
            Number of the run.
        rows : (runs, n_weights)
            Numbers laid out like `values`, on the CPU.
        """
        run = self.runs[i]
        found: dict[str, NDArray[np.float32]] = {}
        for name, part in self._parts(run, rows[i].numpy()).items():
            whole = np.transpose(part, np.argsort(_AXES[name]))
            if name in ("W_E", "W_U"):
                axis = 0 if name == "W_E" else 1
                back = np.empty_like(whole)
                back[(slice(None),) * axis + (run.order,)] = whole
                whole = back
            found[name] = whole
        return found

    def write_back(self) -> None:
        """Copy the weights into the layers."""
        values = self.values.cpu()
        for i, run in enumerate(self.runs):
            for name, array in self.weights_of(i, values).items():
                getattr(run.layer, name).detach().copy_(torch.from_numpy(array))

    def _parts(self, run: PackedRun, row: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
        """Views of a run's weights in its row, without their padding."""
        tokens, d, heads, e = self.shape
        c, n = run.layer.config, len(run.order)
        d_model, qk, vo = c.d_model, c.d_head_qk, c.d_head_vo
        padded = {
            "W_E": ((tokens, d), (n, d_model)), "W_U": ((d, tokens), (d_model, n)),
            "W_Q": ((d, heads, e), (d_model, c.n_heads, qk)),
            "W_K": ((d, heads, e), (d_model, c.n_heads, qk)),
            "W_V": ((d, heads, e), (d_model, c.n_heads, vo)),
            "W_O": ((d, heads, e), (d_model, c.n_heads, vo)),
        }  # fmt: skip
        parts: dict[str, NDArray[np.float32]] = {}
        start = 0
        for name, (shape, inside) in padded.items():
            end = start + math.prod(shape)
            parts[name] = row[start:end].reshape(shape)[tuple(slice(size) for size in inside)]
            start = end
        return parts


def _numbered(run: PackedRun, name: str, weight: NDArray[np.float32]) -> NDArray[np.float32]:
    """Transpose a weight as the kernel wants it, its tokens by their numbers."""
    if name in ("W_E", "W_U"):
        return weight.take(run.order, axis=0 if name == "W_E" else 1)
    return np.transpose(weight, _AXES[name])


def _facts(runs: Sequence[PackedRun], lengths: Mapping[str, int]) -> dict[str, Array]:
    """Facts and sizes of all runs, padded."""
    rows, active = lengths["n_rows"], lengths["n_active"]
    widths = {
        "subjects": rows, "predicates": rows, "weights": rows, "target_starts": rows + 1,
        "targets": lengths["n_targets"], "subject_starts": active + 1, "subject_rows": rows,
        "predicate_starts": active + 1, "predicate_rows": rows,
    }  # fmt: skip
    arrays: dict[str, Array] = {
        name: np.zeros((len(runs), width), np.float32 if name == "weights" else np.int32)
        for name, width in widths.items()
    }
    for i, run in enumerate(runs):
        found: dict[str, Array] = {
            name: getattr(run, name) for name in ("subjects", "predicates", "weights", "targets")
        }
        found["target_starts"] = _starts(run.n_targets)
        for name in ("subject", "predicate"):
            tokens = found[f"{name}s"]
            found[f"{name}_rows"] = np.argsort(tokens, kind="stable")
            found[f"{name}_starts"] = _starts(np.bincount(tokens, minlength=run.n_active))
        for name, array in found.items():
            arrays[name][i, : len(array)] = array
    arrays["sizes"] = np.array([run.sizes for run in runs], np.int32)
    arrays["scales"] = np.array([run.layer.config.attention_scale for run in runs], np.float32)
    return arrays


def _starts(counts: NDArray[Any]) -> Integers:
    """List where each part begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
