"""Training of many layers in which some weights stay as they were drawn, or the direct path does.

`train_layers` holds weights. `train_tables` can hold the direct path too: `DIRECT` stands for the
logits W_E W_U that a token has without any head, E of Wong 2025, equation (5). It trains a batch of
layers at once, on databases that have the same numbers of tokens and a fact for every (subject,
predicate) pair, so that the facts of one database are the cells of a table. Its arithmetic is that
of `capacity.layer` (plain layers, both positions learnt) in another order;
tests/test_experiments_on_size.py compares the two.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from capacity import Database, LayerConfig, Recipe
from capacity.layer import AttentionLayer, train_many
from capacity.layer.model.initial import initial_weights

DIRECT = "direct"
Weights = Mapping[str, Tensor]


def drawn_weights(
    config: LayerConfig, n_tokens: int, seeds: Sequence[int], dtype: torch.dtype = torch.float32
) -> dict[str, Tensor]:
    """Initial weights of one layer for each seed, stacked: shape (n_layers, ...) each."""
    drawn = [initial_weights(config, n_tokens, seed) for seed in seeds]
    return {
        name: torch.as_tensor(np.stack([each[name] for each in drawn]), dtype=dtype)
        for name in drawn[0]
    }


def train_layers(
    config: LayerConfig,
    weights: Weights,
    databases: Sequence[Database],
    recipe: Recipe,
    frozen: Collection[str] = (),
) -> dict[str, Tensor]:
    """Train one layer on each database, and return all weights, stacked as they were given."""
    tasks = []
    for i, db in enumerate(databases):
        own = {name: value[i].clone() for name, value in weights.items()}
        layer = AttentionLayer.of_weights(config, own)
        for name in frozen:
            layer.get_parameter(name).requires_grad_(False)
        tasks.append((layer, db))
    train_many(tasks, recipe)
    return {
        name: torch.stack([layer.get_parameter(name).detach() for layer, _ in tasks])
        for name in weights
    }


class Tables:
    """Databases with a fact for every pair, as tensors.

    Attributes
    ----------
    subjects, predicates : integer tensors, shapes (n_databases, K) and (n_databases, Q)
        Token ids.
    objects : integer tensor, shape (n_databases, K Q)
        Token id of the object of each pair, the predicates of a subject side by side.
    """

    def __init__(self, databases: Sequence[Database]) -> None:
        facts = np.stack([_sorted(db.token_triples) for db in databases]).astype(np.int64)
        n_predicates = len(databases[0].predicate_ids)
        by_subject = facts.reshape(len(databases), -1, n_predicates, 3)
        self.subjects = torch.from_numpy(by_subject[:, :, 0, 0].copy())
        self.predicates = torch.from_numpy(by_subject[:, 0, :, 1].copy())
        self.objects = torch.from_numpy(facts[:, :, 2].copy())
        if not (by_subject[:, :, :, 1] == by_subject[:, :1, :, 1]).all():
            raise ValueError("Every (subject, predicate) pair must have a fact.")


def _sorted(facts: NDArray[np.integer]) -> NDArray[np.integer]:
    return facts[np.lexsort((facts[:, 1], facts[:, 0]))]


def train_tables(
    weights: Weights,
    tables: Tables,
    recipe: Recipe,
    frozen: Collection[str] = (),
    *,
    direct: Tensor | None = None,
) -> dict[str, Tensor]:
    """Train one layer on each database, and return all weights.

    Parameters
    ----------
    weights : mapping of str to tensor
        Weights of each layer, of shape (n_databases, ...), as `drawn_weights` returns them.
    tables : Tables
        The databases.
    recipe : Recipe
        An Adam recipe over all facts and both positions, without weight decay. All its epochs are
        done.
    frozen : collection of str
        Names of the weights that stay as they are.
    direct : tensor, shape (n_databases, n_tokens, n_tokens), optional
        Logits of the direct path, held as they are; by default they are W_E W_U.
    """
    if (recipe.optimizer, recipe.weight_decay, recipe.batch_size, recipe.positions) != (
        "adam", 0.0, 0, "both",
    ):  # fmt: skip
        raise ValueError(f"Only Adam over all facts and both positions; got {recipe}.")
    trained = {
        name: value.clone().requires_grad_(name not in frozen) for name, value in weights.items()
    }
    moved = [value for name, value in trained.items() if name not in frozen]
    optimiser = torch.optim.Adam(moved, betas=(0.9, recipe.beta2), fused=True)
    for rate in recipe.learning_rates().tolist():
        optimiser.param_groups[0]["lr"] = rate
        optimiser.zero_grad()
        losses(trained, tables, direct).sum().backward()
        optimiser.step()
    return {name: value.detach() for name, value in trained.items()}


def losses(weights: Weights, tables: Tables, direct: Tensor | None = None) -> Tensor:
    """Mean next-token cross entropy of each layer over both positions, shape (n_databases,)."""
    after_subject, after_predicate = logits(weights, tables, direct)
    n_subjects = tables.subjects.shape[1]
    predicates = tables.predicates[:, None].expand(-1, n_subjects, -1)
    first = after_subject.log_softmax(-1).gather(2, predicates)
    second = after_predicate.log_softmax(-1).gather(2, tables.objects[..., None])
    return -(first.mean((1, 2)) + second.mean((1, 2))) / 2


def logits(weights: Weights, tables: Tables, direct: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Logits after each subject, (n_databases, K, T), and each pair, (n_databases, K Q, T)."""
    x_k, x_q = (_rows(weights["W_E"], of) for of in (tables.subjects, tables.predicates))
    products = weights["W_V"] @ weights["W_O"]
    # heads first: (n_databases, n_heads, tokens, d)
    y_k, y_q = (x[:, None] @ products for x in (x_k, x_q))
    queries = x_q[:, None] @ weights["W_Q"]
    # from each predicate to subjects, less to itself
    to_k = (x_k[:, None] @ weights["W_K"].mT) @ queries.mT
    to_q = (queries * (x_q[:, None] @ weights["W_K"].mT)).sum(-1)
    gates = torch.sigmoid(to_k - to_q[:, :, None])
    n, _, n_subjects, n_predicates = gates.shape
    # sum over heads of gate y_k, a product of matrices for each subject
    seen_k = gates.transpose(1, 2).transpose(2, 3) @ y_k.transpose(1, 2)
    seen_q = (1 - gates).permute(0, 3, 2, 1) @ y_q.transpose(1, 2)
    heads = (seen_k + seen_q.transpose(1, 2)).reshape(n, n_subjects * n_predicates, -1)
    W_U, first = weights["W_U"], y_k.sum(1)
    if direct is None:
        across = x_q[:, None].expand(-1, n_subjects, -1, -1).reshape(heads.shape)
        return (x_k + first) @ W_U, (across + heads) @ W_U
    own = _rows(direct, tables.predicates)[:, None].expand(-1, n_subjects, -1, -1)
    after_pair = heads @ W_U + own.reshape(n, n_subjects * n_predicates, -1)
    return first @ W_U + _rows(direct, tables.subjects), after_pair


def _rows(matrix: Tensor, ids: Tensor) -> Tensor:
    """Rows of a matrix for each database, (n_databases, ids, columns)."""
    return matrix.gather(1, ids[..., None].expand(-1, -1, matrix.shape[2]))


def recalled(
    weights: Weights, tables: Tables, tau: float, direct: Tensor | None = None
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether each fact's object alone is largest, and whether it has tau: (n_databases, K Q)."""
    found = logits(weights, tables, direct)[1].double()
    own = found.gather(2, tables.objects[..., None])
    others = found.scatter(2, tables.objects[..., None], -torch.inf).amax(-1)
    likely = own[..., 0] - found.logsumexp(-1) >= np.log(tau)
    return (own[..., 0] > others).numpy(), likely.numpy()
