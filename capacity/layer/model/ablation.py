"""Layers without what some of their heads write.

An ablated layer is a layer of its own, which all analyses take; to change an activation as a layer
runs, see `capacity.layer.model.edits`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import torch
from jaxtyping import Int
from torch import Tensor

from capacity.checks import require_integer, shown
from capacity.database.given_facts import DatabaseLike
from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.layer.model.attention_layer import AttentionLayer
from capacity.layer.model.tensor import require_same_vocabulary


def ablate(
    layer: AttentionLayer,
    heads: int | Iterable[int],
    *,
    mean_over: DatabaseLike | Int[Tensor, "batch n"] | None = None,
) -> AttentionLayer:
    """Copy a layer without what some of its heads write.

    The copy is a layer like any other: `capacity.evaluator.fact_table` shows which facts it still
    recalls, and `layer_tensor` has its tensor L, of whose sum the terms of these heads are gone.

    Parameters
    ----------
    layer : AttentionLayer
        The layer, which stays as it is.
    heads : int, or iterable of int
        Heads to ablate, counted from 0.
    mean_over : Database or int64 tensor of shape (batch, n), optional
        Sentences: those of the pairs of a database, or of what `as_database` makes one of, or some
        of yours. The heads then write the mean of what they write at the last token of these,
        wherever they write, in place of nothing.

    Returns
    -------
    AttentionLayer
        With `mean_over` a layer with biases, to which the mean is added, so that it has no tensor L
        and no circuits.

    Raises
    ------
    InvalidTypeError
        If `layer` is of another type.
    InvalidArgumentError
        For a head that there isn't, facts of another number of tokens, or sentences that the layer
        can't read.

    Examples
    --------
    A layer that holds its facts in the one head that it has recalls half of them without it, for
    two subjects get the same answer:

    >>> from capacity import Database
    >>> from capacity.evaluator import evaluate
    >>> from capacity.layer import store_in_query_key
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "p", "y")])
    >>> layer = store_in_query_key(db)
    >>> evaluate(layer, db).argmax, evaluate(ablate(layer, 0), db).argmax_paper
    (1.0, 0.5)
    """
    if not isinstance(layer, AttentionLayer):
        raise InvalidTypeError(
            f"`layer` must be an AttentionLayer; got {shown(layer)}. Heads of a pretrained model "
            "are ablated by capacity.transformer.ablated."
        )
    chosen = [heads] if not isinstance(heads, Iterable) else list(heads)
    n_heads = layer.config.n_heads
    at = sorted({require_integer("heads", one, least=0, most=n_heads - 1) for one in chosen})
    if not at:
        raise InvalidArgumentError(
            f"`heads` must name at least one head, from 0 to {n_heads - 1}; got none."
        )
    weights = {name: tensor.detach().clone() for name, tensor in layer.state_dict().items()}
    config = layer.config
    if mean_over is not None:
        mean = _mean_written(layer, at, mean_over)
        if not config.bias:
            config = replace(config, bias=True)
            shapes = config.shapes(layer.d_vocab)
            weights |= {name: mean.new_zeros(shapes[name]) for name in shapes.keys() - weights}
        weights["b_O"] = weights["b_O"] + mean
    weights["W_O"][at] = 0
    return AttentionLayer.of_weights(config, weights)


@torch.no_grad()
def _mean_written(layer: AttentionLayer, heads: list[int], over: DatabaseLike | Tensor) -> Tensor:
    """Mean of what some heads write together at the last token of some sentences."""
    if not isinstance(over, Tensor):
        db = require_same_vocabulary(layer, over)
        pairs = sorted(set(map(tuple, db.token_triples[:, :2].tolist())))
        over = torch.tensor(pairs, dtype=torch.int64, device=layer.W_E.device)
    cache = layer.capture(over)
    # z is 0 at padding, which follows the last token
    z = cache.layers[0].z[:, heads, -1]
    return torch.einsum("bhv,hvd->d", z, layer.W_O[heads]) / len(z)
