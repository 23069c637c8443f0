"""The blocked engine: analytic gradients for large layers and databases, on a CPU.

The heads are computed for tokens and facts by matrix products. Logits are computed for a block of
rows that fits the cache: r W_U by a matrix product, all exponentials in two passes, and two more
products for the gradients. Only one block of logits is in memory at a time.

For a fact (k, q), with v the values of a token, all heads side by side, and a their gates,

    r = x_q + (v_q + a (v_k - v_q)) W_O,    a = sigmoid(q_q . (k_k - k_q)),

and after a subject r = x_k + v_k W_O, once for each distinct subject (see `fused.attention`).
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from capacity.database.facts import Database
from capacity.layer.engines.blocked.softmax import errors_of, scatter_add
from capacity.layer.engines.optimizer import Looked, train_epochs
from capacity.layer.model import AttentionLayer
from capacity.layer.recipe import Recipe, Training
from capacity.layer.snapshots import NO_SNAPSHOTS, Snapshots

Ints = NDArray[np.int64]

# size of a block of logits: about that of the L2 cache
BLOCK_BYTES = 1 << 20
# least rows in a block, or W_U would be read too often
LEAST_ROWS = 64
# logits are padded to a multiple, for whole vectors of either type
_LANES = 16


def run(
    layer: AttentionLayer,
    db: Database,
    recipe: Recipe,
    rng: np.random.Generator,
    snapshots: Snapshots = NO_SNAPSHOTS,
) -> Training:
    """Train `layer` in place; `capacity.layer.train` checks the arguments."""
    look = Model(layer, db, recipe).look
    return train_epochs(layer, db.n_triples, recipe, rng, look, snapshots, engine="blocked")


class Model:
    """Loss and gradients of a layer for the facts of a database."""

    def __init__(self, layer: AttentionLayer, db: Database, recipe: Recipe) -> None:
        self._layer, self._both = layer, recipe.positions == "both"
        self._ids = db.token_triples.astype(np.int64)
        # facts by rows among the tokens that are a subject or a predicate
        active, rows = np.unique(self._ids[:, :2], return_inverse=True)
        self._active, self._rows = torch.from_numpy(active), rows.reshape(-1, 2)
        width = -(-db.n_tokens // _LANES) * _LANES
        height = max(LEAST_ROWS, BLOCK_BYTES // (width * layer.W_E.element_size()))
        dtype = layer.W_E.dtype
        self._block = torch.zeros(min(height, 2 * len(rows)), width, dtype=dtype)
        self._mask = torch.zeros(width, dtype=dtype)
        self._mask[db.n_tokens :] = -torch.inf

    @torch.no_grad()
    def look(self, members: Tensor | None, *, backward: bool) -> Looked:
        """Evaluate the weights on some facts (`capacity.layer.engines.optimizer.Look`)."""
        chosen = slice(None) if members is None else members.numpy()
        rows, ids = self._rows[chosen], self._ids[chosen]
        subjects, starts, targets = np.zeros(0, np.int64), np.zeros(0, np.int64), ids[:, 2]
        if self._both:
            order = np.argsort(rows[:, 0], kind="stable")
            subjects, starts = np.unique(rows[order, 0], return_index=True)
            targets = np.concatenate([ids[order, 1], targets])
        starts = np.append(starts, np.arange(len(targets) - len(ids), len(targets) + 1))
        weight = (0.5 if self._both else 1.0) / len(ids)
        heads = _Heads(self._layer, self._active, rows, subjects)
        losses, d_rows = self._predict(heads.residuals, starts, targets, weight, backward=backward)
        if backward:
            heads.backward(d_rows)
        # a fact's row has one target
        of_objects = losses[len(subjects) :]
        known = float((of_objects < math.log(2)).mean())
        return Looked(weight * float(losses.sum()), float(-of_objects.max()), known)

    def _predict(
        self, rows: Tensor, starts: Ints, targets: Ints, weight: float, *, backward: bool
    ) -> tuple[NDArray[np.float64], Tensor]:
        """Return losses of all rows and their gradients; set ``.grad`` of W_U."""
        W_U, width = self._layer.W_U, self._block.shape[1]
        U = torch.nn.functional.pad(W_U, (0, width - W_U.shape[1]))
        d_U, d_rows = torch.zeros_like(U), torch.empty_like(rows)
        losses = np.empty(len(rows))
        scales = torch.empty(len(rows), dtype=rows.dtype)
        for first in range(0, len(rows), len(self._block)):
            stop = min(first + len(self._block), len(rows))
            block, part = self._block[: stop - first], rows[first:stop]
            torch.mm(part * math.log2(math.e), U, out=block)
            errors_of(
                block.view(-1).numpy(), first, stop, starts, targets, weight,
                scales.numpy(), losses, self._mask.numpy(),
            )  # fmt: skip
            if backward:
                scale = scales[first:stop, None]
                torch.mm(block, U.T, out=d_rows[first:stop])
                d_rows[first:stop] *= scale
                d_U.addmm_((part * scale).T, block)
        if backward:
            W_U.grad = d_U[:, : W_U.shape[1]].contiguous()
        return losses, d_rows


class _Heads:
    """Residuals of all rows: after the distinct subjects, then after the facts' predicates."""

    def __init__(self, layer: AttentionLayer, active: Tensor, facts: Ints, subjects: Ints) -> None:
        self._layer, self._active, config = layer, active, layer.config
        self._scale = config.attention_scale
        self._facts, self._subjects = facts, subjects
        d, heads = config.d_model, config.n_heads
        # heads side by side
        self._Q = layer.W_Q.permute(1, 0, 2).reshape(d, -1)
        self._K = layer.W_K.permute(2, 0, 1).reshape(d, -1)
        self._V = layer.W_V.permute(1, 0, 2).reshape(d, -1)
        self._O = layer.W_O.reshape(-1, d)
        self._E = layer.W_E[active]
        q, k, v = ((self._E @ W).view(len(active), heads, -1) for W in (self._Q, self._K, self._V))
        subject, predicate = torch.from_numpy(facts).T
        self._queries, self._keys = q[predicate], k[subject] - k[predicate]
        self._values, self._steps = v[torch.from_numpy(subjects)].flatten(1), v[subject]
        self._steps -= v[predicate]
        scores = (self._queries * self._keys).sum(-1, keepdim=True)
        self._gates = torch.sigmoid(self._scale * scores)
        self._mixed = (v[predicate] + self._gates * self._steps).flatten(1)
        self.residuals = torch.cat(
            [
                torch.addmm(self._E[torch.from_numpy(subjects)], self._values, self._O),
                torch.addmm(self._E[predicate], self._mixed, self._O),
            ]
        )

    def backward(self, d_rows: Tensor) -> None:
        """Set ``.grad`` of embeddings and heads, given the gradients of the rows."""
        n_first = len(self._subjects)
        d_first, d_second = d_rows[:n_first], d_rows[n_first:]
        d_O = self._values.T @ d_first + self._mixed.T @ d_second
        d_mixed = (d_second @ self._O.T).view_as(self._steps)
        d_gates = (d_mixed * self._steps).sum(-1, keepdim=True)
        d_scores = self._scale * d_gates * self._gates * (1 - self._gates)
        d_keys = d_scores * self._queries
        subject, predicate = self._facts[:, 0], self._facts[:, 1]
        d_E, d_q, d_k, d_v = (
            torch.zeros(len(self._E), W.shape[1], dtype=W.dtype)
            for W in (self._E, self._Q, self._K, self._V)
        )
        gated = self._gates * d_mixed
        for out, rows, values in [
            (d_E, self._subjects, d_first),
            (d_E, predicate, d_second),
            (d_q, predicate, d_scores * self._keys),
            (d_k, subject, d_keys),
            (d_k, predicate, -d_keys),
            (d_v, self._subjects, d_first @ self._O.T),
            (d_v, subject, gated),
            (d_v, predicate, d_mixed - gated),
        ]:
            scatter_add(out.numpy(), rows, values.flatten(1).numpy())
        d_E += d_q @ self._Q.T + d_k @ self._K.T + d_v @ self._V.T
        layer, E = self._layer, self._E
        heads, d = layer.config.n_heads, layer.config.d_model
        layer.W_E.grad = torch.zeros_like(layer.W_E).index_copy_(0, self._active, d_E)
        layer.W_Q.grad = (E.T @ d_q).view(d, heads, -1).permute(1, 0, 2).contiguous()
        layer.W_K.grad = (E.T @ d_k).view(d, heads, -1).permute(1, 2, 0).contiguous()
        layer.W_V.grad = (E.T @ d_v).view(d, heads, -1).permute(1, 0, 2).contiguous()
        layer.W_O.grad = d_O.view_as(layer.W_O)
