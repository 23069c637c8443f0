"""Heads of language models that are affine but for a soft cap, and the logits before the cap.

A logit of such a head is a sum over what its last embedding is a sum of. Most decoders have one: a
linear map, with a factor in Cohere, Granite and Falcon-H1, and with a cap c tanh(x / c) of each
logit in Gemma 2 and 4. The heads of BERT and its kin have a nonlinear layer of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.following.modules import is_linear
from capacity.transformer.activations.records.validation import SAME
from capacity.transformer.residual.partial_sums import output_head

# rows of embeddings by which a head is found, and rows whose logits are in memory at a time
_PROBES, _ROWS = 4, 64


@briefly_shown
@dataclass(frozen=True, eq=False)
class AffineHead:
    """Logits (before a cap) of the tokens of a vocabulary: ``scale * (e @ W_U) + factor * b_U``.

    Attributes
    ----------
    W_U : (d_model, d_vocab)
        The model's own output embeddings, which are not copied.
    b_U : (d_vocab,) or None
        Their bias.
    scale : float
        Factor of embeddings and logits together.
    factor : float
        Factor of logits alone.
    softcap : float or None
        Cap c, where the model's logits are c tanh(x / c) for these logits x.
    """

    W_U: Float[Tensor, "d_model d_vocab"]
    b_U: Float[Tensor, "d_vocab"] | None
    scale: float
    factor: float
    softcap: float | None

    @property
    def d_vocab(self) -> int:
        """Number of tokens that have a logit."""
        return self.W_U.shape[1]

    def directions(self, tokens: Int[Tensor, "m"]) -> Float[Tensor, "m d_model"]:
        """Gradients of the logits of tokens, one for each."""
        return self.scale * self.W_U[:, tokens].T

    def biases(self, tokens: Int[Tensor, "m"]) -> Float[Tensor, "m"]:
        """Logits of tokens that don't depend on embeddings; 0 without a bias."""
        if self.b_U is None:
            return self.W_U.new_zeros(len(tokens))
        return self.factor * self.b_U[tokens]


def affine_head(model: nn.Module, embeddings: Float[Tensor, "m d_model"]) -> AffineHead:
    """Find the affine map from last embeddings to logits, and the cap after it.

    The model's own head runs on some of the embeddings, and on them doubled, which shows whether it
    is affine.

    Parameters
    ----------
    model : nn.Module
        Model of ``transformers`` with an LM head.
    embeddings : (m, d_model)
        Last embeddings of some tokens.

    Returns
    -------
    AffineHead
        The map.

    Raises
    ------
    InvalidArgumentError
        If the model has no head (`output_head`), or one that isn't affine.
    """
    some = embeddings[:_PROBES]
    probes = torch.cat([some, 2 * some])
    found = list(_calls(model, probes))
    if len(found) != 1:
        raise _not_affine(model, "its output embeddings aren't one linear module")
    module, x, y, logits = found[0]
    before, off = _multiple(x, probes)
    if not off <= SAME:
        raise _not_affine(model, "it has a layer of its own before the output embeddings")
    # small logits are nearly those that a cap leaves: the closest fit is the model's
    fits = [(*_multiple(_uncapped(logits, cap), y), cap) for cap in (None, *_caps(model))]
    after, off, cap = min(fits, key=lambda fit: fit[1])
    if not off <= SAME:
        raise _not_affine(model, "its logits are changed after the output embeddings")
    bias = None if module.bias is None else module.bias.detach()
    weight = module.weight.detach()
    W_U = weight.T if isinstance(module, nn.Linear) else weight
    return AffineHead(W_U, bias, before * after, after, cap)


def logits_before_cap(
    model: nn.Module,
    head: AffineHead,
    embeddings: Float[Tensor, "m d_model"],
    tokens: Int[Tensor, "m k"],
) -> Float[Tensor, "m k"]:
    """Logits of some tokens by the model's own output embeddings, before a cap.

    Parameters
    ----------
    model : nn.Module
        Model of ``transformers`` with an LM head.
    head : AffineHead
        Its head, as `affine_head` has found it.
    embeddings : (m, d_model)
        Last embeddings.
    tokens : (m, k) integers
        Tokens, k for each embedding.
    """
    found: list[Tensor] = []
    for rows, wanted in zip(embeddings.split(_ROWS), tokens.split(_ROWS), strict=True):
        ((_, _, y, _),) = _calls(model, rows)
        found.append(head.factor * y.gather(1, wanted))
    return torch.cat(found)


def _calls(model: nn.Module, embeddings: Tensor) -> Iterator[tuple[Any, Tensor, Tensor, Tensor]]:
    """Run the head; yield each call of its linear module, its input and output, and the logits."""
    run: Callable[[Tensor], Tensor] = output_head(model)
    known: Any = model
    module = known.get_output_embeddings()
    if not is_linear(module):
        return
    seen: list[tuple[Tensor, Tensor]] = []
    hook = module.register_forward_hook(lambda _, args, out: seen.append((args[0], out)))
    try:
        logits = run(embeddings)
    finally:
        hook.remove()
    for x, y in seen:
        yield module, x.flatten(0, -2), y.flatten(0, -2), logits


def _multiple(x: Tensor, y: Tensor) -> tuple[float, float]:
    """Number that one tensor is, times another, and how far it is from that, of its size."""
    if x.shape != y.shape:
        return 1.0, math.inf
    # a vocabulary may be filled up with tokens that can't be predicted
    real = x.isfinite() & y.isfinite()
    a, b = x[real].double(), y[real].double()
    square = float(b.square().sum())
    if not square:
        return 1.0, math.inf
    factor = float(a @ b) / square
    factor = 1.0 if abs(factor - 1) <= 1e-6 else factor
    off = float((a - factor * b).abs().max() / a.abs().max().clamp_min(1e-300))
    return factor, off


def _uncapped(logits: Tensor, cap: float | None) -> Tensor:
    return logits if cap is None else cap * (logits.double() / cap).atanh()


def _caps(model: Any) -> Iterator[float]:
    """Numbers of a configuration that may be a cap of logits."""
    for config in (model.config, model.config.get_text_config()):
        for name, value in vars(config).items():
            if "softcap" in name and isinstance(value, int | float) and value > 0:
                yield float(value)


def _not_affine(model: nn.Module, why: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"The head must map last embeddings to logits by a linear map, as those of decoders do, so "
        f"that logits are sums over terms; that of {type(model).__name__} doesn't: {why}. Apply "
        "output_head(model) to sums of terms (partial_sum_accuracy), or ablate heads."
    )
