"""The blocked engine: analytic gradients for large layers and databases, on a CPU.

The heads are computed for tokens and facts by matrix products. Logits are computed for a block of
rows that fits the cache: r W_U by a matrix product, all exponentials in two passes, and two more
products for the gradients. Only one block of logits is in memory at a time. What isn't a matrix
product is the `Backend` of the device: compiled loops on a CPU, tensor operations elsewhere.

For a fact (k, q), with v the values of a token, all heads side by side, and a their gates,

    r = x_q + (v_q + a (v_k - v_q)) W_O,    a = sigmoid(q_q . (k_k - k_q)),

and after a subject r = x_k + v_k W_O, once for each distinct subject (see `fused.attention`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from capacity.database.facts import Database
from capacity.layer.engines.blocked.backend import GPU, Backend, Ints, Rows, Targets, placed
from capacity.layer.engines.blocked.cpu import CPU
from capacity.layer.engines.optimizer import Looked, train_epochs
from capacity.layer.model.attention_layer import AttentionLayer
from capacity.layer.run.recipe import Recipe, Training
from capacity.layer.run.snapshots import NO_SNAPSHOTS, Snapshots

# least rows in a block, or W_U would be read too often
LEAST_ROWS = 64


def run(
    layer: AttentionLayer,
    db: Database,
    recipe: Recipe,
    rng: np.random.Generator,
    snapshots: Snapshots = NO_SNAPSHOTS,
) -> Training:
    """Train `layer` in place; `capacity.layer.train` checks the arguments."""
    look = Model(layer, db, recipe, backend_of(layer.W_E.device)).look
    return train_epochs(layer, db.n_triples, recipe, rng, look, snapshots, engine="blocked")


def backend_of(device: torch.device) -> Backend:
    """Return the backend for a device."""
    return CPU if device.type == "cpu" else GPU


@dataclass(frozen=True)
class Facts:
    """Facts of a step.

    Attributes
    ----------
    n_facts : int
        Number of facts.
    weight : float
        Weight of each target in the loss.
    distinct, subject, predicate : Rows
        The distinct subjects, and each fact's subject and predicate, among the active tokens.
    targets : Targets
        Of the rows of logits: those of the distinct subjects, then those of the facts.
    """

    n_facts: int
    weight: float
    distinct: Rows
    subject: Rows
    predicate: Rows
    targets: Targets


class Model:
    """Loss and gradients of a layer for the facts of a database.

    Attributes
    ----------
    whole : Facts
        All facts.
    """

    def __init__(
        self, layer: AttentionLayer, db: Database, recipe: Recipe, backend: Backend
    ) -> None:
        self._layer, self._both, self._backend = layer, recipe.positions == "both", backend
        self._frozen = [weight for weight in layer.parameters() if not weight.requires_grad]
        self._ids = db.token_triples.astype(np.int64)
        # facts by rows among the tokens that are a subject or a predicate
        active, rows = np.unique(self._ids[:, :2], return_inverse=True)
        self._rows = rows.reshape(-1, 2)
        self._active = placed(active, layer.W_E.device)
        width = -(-db.n_tokens // backend.lanes) * backend.lanes
        height = max(LEAST_ROWS, backend.block_bytes // (width * layer.W_E.element_size()))
        self._block = layer.W_E.new_zeros(min(height, 2 * len(rows)), width)
        self.whole = self.chosen(slice(None))

    @torch.no_grad()
    def look(self, members: Tensor | None, *, backward: bool) -> Looked:
        """Evaluate the weights on some facts (`capacity.layer.engines.optimizer.Look`)."""
        facts = self.whole if members is None else self.chosen(members.cpu().numpy())
        losses = self.losses(facts, backward=backward).cpu().numpy()
        for weight in self._frozen:
            # an optimizer leaves what has none
            weight.grad = None
        of_objects = losses[len(losses) - facts.n_facts :]
        known = float((of_objects < math.log(2)).mean())
        return Looked(facts.weight * float(losses.sum()), float(-of_objects.max()), known)

    def losses(self, facts: Facts, *, backward: bool) -> Tensor:
        """Compute ``facts.targets.losses``; set ``.grad`` if `backward`."""
        heads = _Heads(self._layer, self._active, facts)
        d_rows = self._predict(heads.residuals, facts, backward=backward)
        if backward:
            heads.backward(d_rows)
        return facts.targets.losses

    def chosen(self, chosen: slice | Ints) -> Facts:
        """Return some facts, by their numbers, as the device wants them."""
        rows, ids = self._rows[chosen], self._ids[chosen]
        subjects, starts, targets = np.zeros(0, np.int64), np.zeros(0, np.int64), ids[:, 2]
        if self._both:
            order = np.argsort(rows[:, 0], kind="stable")
            subjects, starts = np.unique(rows[order, 0], return_index=True)
            targets = np.concatenate([ids[order, 1], targets])
        starts = np.append(starts, np.arange(len(targets) - len(ids), len(targets) + 1))
        weight = (0.5 if self._both else 1.0) / len(ids)
        device, make = self._layer.W_E.device, self._backend
        distinct, subject, predicate = (
            make.rows(numbers, device) for numbers in (subjects, *rows.T)
        )
        n_tokens = self._layer.W_U.shape[1]
        on = make.targets(starts, np.ascontiguousarray(targets), weight, n_tokens, self._block)
        return Facts(len(ids), weight, distinct, subject, predicate, on)

    def _predict(self, rows: Tensor, facts: Facts, *, backward: bool) -> Tensor:
        """Compute the losses of all rows, and return their gradients; set ``.grad`` of W_U."""
        W_U, width = self._layer.W_U, self._block.shape[1]
        U = torch.nn.functional.pad(W_U, (0, width - W_U.shape[1]))
        d_U, d_rows = torch.zeros_like(U), torch.empty_like(rows)
        for first in range(0, len(rows), len(self._block)):
            n = min(len(self._block), len(rows) - first)
            block, part = self._block.narrow(0, 0, n), rows.narrow(0, first, n)
            torch.mm(part * math.log2(math.e), U, out=block)
            scale = facts.targets.errors(block, first)
            if backward:
                d_part = d_rows.narrow(0, first, n)
                torch.mm(block, U.T, out=d_part)
                d_part *= scale
                d_U.addmm_((part * scale).T, block)
        if backward:
            W_U.grad = d_U.narrow(1, 0, W_U.shape[1]).contiguous()
        return d_rows


class _Heads:
    """Residuals of all rows: after the distinct subjects, then after the facts' predicates."""

    def __init__(self, layer: AttentionLayer, active: Tensor, facts: Facts) -> None:
        self._layer, self._active, config = layer, active, layer.config
        self._scale = config.attention_scale
        self._facts = facts
        d, heads = config.d_model, config.n_heads
        # heads side by side
        self._Q = layer.W_Q.permute(1, 0, 2).reshape(d, -1)
        self._K = layer.W_K.permute(2, 0, 1).reshape(d, -1)
        self._V = layer.W_V.permute(1, 0, 2).reshape(d, -1)
        self._O = layer.W_O.reshape(-1, d)
        self._E = layer.W_E.index_select(0, active)
        q, k, v = ((self._E @ W).view(len(active), heads, -1) for W in (self._Q, self._K, self._V))
        distinct, subject, predicate = (
            rows.index for rows in (facts.distinct, facts.subject, facts.predicate)
        )
        self._queries = q.index_select(0, predicate)
        self._keys = k.index_select(0, subject) - k.index_select(0, predicate)
        own = v.index_select(0, predicate)
        self._values = v.index_select(0, distinct).flatten(1)
        self._steps = v.index_select(0, subject) - own
        scores = (self._queries * self._keys).sum(-1, keepdim=True)
        self._gates = torch.sigmoid(self._scale * scores)
        self._mixed = (own + self._gates * self._steps).flatten(1)
        self.residuals = torch.cat(
            [
                torch.addmm(self._E.index_select(0, distinct), self._values, self._O),
                torch.addmm(self._E.index_select(0, predicate), self._mixed, self._O),
            ]
        )

    def backward(self, d_rows: Tensor) -> None:
        """Set ``.grad`` of embeddings and heads, given the gradients of the rows."""
        d_first, d_second = d_rows.split([len(self._values), len(self._mixed)])
        d_O = self._values.T @ d_first + self._mixed.T @ d_second
        d_mixed = (d_second @ self._O.T).view_as(self._steps)
        d_gates = (d_mixed * self._steps).sum(-1, keepdim=True)
        d_scores = self._scale * d_gates * self._gates * (1 - self._gates)
        d_keys = d_scores * self._queries
        facts = self._facts
        d_E, d_q, d_k, d_v = (
            W.new_zeros(len(self._E), W.shape[1]) for W in (self._E, self._Q, self._K, self._V)
        )
        gated = self._gates * d_mixed
        facts.distinct.add((d_E, d_first), (d_v, d_first @ self._O.T))
        facts.subject.add((d_k, d_keys), (d_v, gated))
        facts.predicate.add(
            (d_E, d_second), (d_q, d_scores * self._keys), (d_k, -d_keys), (d_v, d_mixed - gated)
        )
        d_E += d_q @ self._Q.T + d_k @ self._K.T + d_v @ self._V.T
        layer, E = self._layer, self._E
        heads, d = layer.config.n_heads, layer.config.d_model
        layer.W_E.grad = torch.zeros_like(layer.W_E).index_copy_(0, self._active, d_E)
        for W, gradient, axes in [
            (layer.W_Q, d_q, (1, 0, 2)),
            (layer.W_K, d_k, (1, 2, 0)),
            (layer.W_V, d_v, (1, 0, 2)),
        ]:
            by_head = (E.T @ gradient).view(d, heads, -1).permute(axes)
            # `contiguous` fails for the tests' tensors without data
            W.grad = by_head.clone(memory_format=torch.contiguous_format)
        layer.W_O.grad = d_O.view_as(layer.W_O)
