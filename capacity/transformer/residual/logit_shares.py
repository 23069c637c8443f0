"""Direct logit attribution: a logit as the sum of what each part of a model has written.

The last embedding of a token is a sum of what the embeddings, the heads and the feed-forwards have
written (Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits"), once the scales
of the norms on the way are taken at their values. So is a logit of an affine head, and the
difference of two logits. The gradient of the logit is carried back through the steps of the
residual stream, with the scales fixed: what a part has written, times that gradient, is its share.
The mean that a LayerNorm subtracts is subtracted from each part.

By V the output of a head is a sum over the tokens that it attends to; each has a share of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from capacity.checks import require_integer
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.models.families import unwrapped
from capacity.transformer.activations.records.cache import (
    ActivationCache,
    Mapped,
    Normed,
    Scaled,
    Written,
)
from capacity.transformer.activations.records.heads import LayerActivations
from capacity.transformer.activations.records.validation import SAME
from capacity.transformer.residual.affine_head import affine_head, logits_before_cap
from capacity.transformer.residual.choices import (
    one_for_each,
    positions_of,
)

if TYPE_CHECKING:
    import pandas as pd

# component, layer, head, and the share of each sentence
Share = tuple[str, int | None, int | None, Tensor]


@briefly_shown
@dataclass(frozen=True, eq=False)
class LogitAttribution:
    """A logit of each sentence, or a difference of two, as a sum over components.

    Attributes
    ----------
    terms : pandas.DataFrame
        One row for each sentence and component, with columns ``sentence``, ``component``,
        ``layer``, ``head`` (missing where there is none) and ``logit``. Components are
        ``embedding``; ``head``, with its bias of values; ``attention_bias``, the bias b_O of a
        layer's heads together; ``feed_forward`` and ``mixers``, with their biases; ``bias``, of
        norms and maps of the stream; ``output_bias``, of the head of the model.
    logits : (batch,)
        The sums: logits before a cap, by the model's own output embeddings.
    by_origin : tuple of (batch, n_heads, n)
        For each attention layer, what a head takes from each token; the sum over tokens is the
        row of the head.
    layer_numbers : tuple of int
        Index of each attention layer in the model.
    positions : (batch,) integers
        Position of each sentence whose next (or masked) token has these logits.
    softcap : float or None
        Cap c of the model, whose logits are c tanh(x / c) of these logits x before the difference.
    """

    terms: pd.DataFrame
    logits: Float[Tensor, "batch"]
    by_origin: tuple[Float[Tensor, "batch heads n"], ...]
    layer_numbers: tuple[int, ...]
    positions: Int[Tensor, "batch"]
    softcap: float | None

    def by_layer(self) -> pd.DataFrame:
        """Return the sums over heads, one row for each sentence and layer.

        Returns
        -------
        pandas.DataFrame
            The index has levels ``sentence`` and ``layer``, which is missing for what comes before
            the first layer and after the last; components are columns. The sum of a sentence's rows
            is its logit.
        """
        keys = ["sentence", "layer", "component"]
        summed = self.terms.groupby(keys, sort=False, dropna=False)["logit"].sum()
        return summed.unstack(sort=False).fillna(0.0).rename_axis(columns=None)

    def by_token(self, tokens: Sequence[str] | None = None, *, sentence: int = 0) -> pd.DataFrame:
        """Return what each head of a sentence takes from each token.

        Parameters
        ----------
        tokens : sequence of str, optional
            The tokens of the sentence with its padding, as labels of columns; by default their
            positions.
        sentence : int
            Index of the sentence.

        Returns
        -------
        pandas.DataFrame
            One row for each layer and head, one column for each token.

        Raises
        ------
        InvalidArgumentError
            If there is no such sentence, or another number of tokens.
        """
        import pandas as pd

        most = len(self.logits) - 1
        sentence = require_integer("sentence", sentence, least=0, most=most)
        shares = [of_layer[sentence].double().cpu().numpy() for of_layer in self.by_origin]
        n = shares[0].shape[1]
        if tokens is not None and len(tokens) != n:
            raise InvalidArgumentError(
                f"`tokens` must be as many as the sentence has with its padding, {n}; got "
                f"{len(tokens)}."
            )
        labels = range(n) if tokens is None else list(tokens)
        return pd.concat(
            {
                number: pd.DataFrame(rows, columns=labels)
                for number, rows in zip(self.layer_numbers, shares, strict=True)
            },
            names=["layer", "head"],
        )


@torch.no_grad()
def logit_attribution(
    model: nn.Module,
    captured: ActivationCache,
    tokens: int | Sequence[int] | Int[Tensor, "batch"],
    *,
    contrast: int | Sequence[int] | Int[Tensor, "batch"] | None = None,
    positions: int | Sequence[int] | Int[Tensor, "batch"] | None = None,
) -> LogitAttribution:
    """Attribute the logit of a token to the components of a model, head by head.

    Parameters
    ----------
    model : nn.Module
        Model of ``transformers`` with an LM head that is affine but for a cap, as most decoders.
    captured : ActivationCache
        Its activations on some sentences, by `capture`, with all layers and heads.
    tokens : int, or one for each sentence
        Token whose logit is attributed.
    contrast : int, or one for each sentence, optional
        Token whose logit is subtracted: the answer against another one.
    positions : int, or one for each sentence, optional
        Position whose logits are meant, counted with padding; by default a sentence's last token.

    Returns
    -------
    LogitAttribution
        Shares of all components, which sum to the logit; that is checked against the model's own.

    Raises
    ------
    InvalidArgumentError
        If the model has no head, or one that isn't affine; if a token or a position doesn't exist;
        if the residual stream isn't known; if the shares don't sum to the logit.

    Notes
    -----
    Where the model caps its logits (Gemma 2), those before the cap are attributed. Without a cap
    they are the model's logits, with its factor.

    Examples
    --------
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> from capacity.transformer import capture
    >>> sizes = GPT2Config(n_embd=16, n_layer=2, n_head=4, vocab_size=50)
    >>> model, inputs = GPT2LMHeadModel(sizes).eval(), torch.tensor([[2, 7, 11, 3]])
    >>> found = logit_attribution(model, capture(model, inputs), 5, contrast=8)
    >>> (found.terms["component"] == "head").sum().item(), found.by_origin[0].shape
    (8, torch.Size([1, 4, 4]))
    >>> logits = model(inputs).logits[0, -1].detach()
    >>> bool(abs(found.terms["logit"].sum() - (logits[5] - logits[8])) < 1e-5)
    True
    """
    model = unwrapped(model)
    captured.require_source(model)
    at = positions_of(captured, positions)
    sentences = torch.arange(len(at), device=at.device)
    *_, embeddings = captured.streams()
    last = embeddings[sentences, at]
    head = affine_head(model, last)
    wanted = [one_for_each("tokens", tokens, last, head.d_vocab)]
    if contrast is not None:
        wanted.append(one_for_each("contrast", contrast, last, head.d_vocab))
    own = logits_before_cap(model, head, last, torch.stack(wanted, dim=1))
    direction, biases = (
        _less([of(one) for one in wanted]) for of in (head.directions, head.biases)
    )

    def here(x: Tensor) -> Tensor:
        return x[sentences, at]

    def of_heads(layer: LayerActivations, inner: Tensor) -> Tensor:
        return _by_origin(layer, inner, sentences, at)

    shares, origins = carried_back(captured, direction, here, of_heads)
    if head.b_U is not None:
        shares.append(("output_bias", None, None, biases))
    logits = _less([*own.T])
    _require_sum(shares, logits, captured)
    return LogitAttribution(
        _table(shares), logits, origins, captured.layer_numbers, at, head.softcap
    )


def _less(values: list[Tensor]) -> Tensor:
    """The first value, less the second if there is one."""
    return values[0] if len(values) == 1 else values[0] - values[1]


def carried_back(
    captured: ActivationCache,
    direction: Tensor,
    at_positions: Callable[[Tensor], Tensor],
    of_heads: Callable[[LayerActivations, Tensor], Tensor],
) -> tuple[list[Share], tuple[Tensor, ...]]:
    """Carry gradients of logits back through a model, and multiply by what each part has written.

    Parameters
    ----------
    captured : ActivationCache
        Activations of the model.
    direction : (batch, ..., d_model)
        Gradients of the logits with regard to the last embeddings; several for each sentence, if
        there is an axis between.
    at_positions : callable
        Returns of numbers of all tokens, (batch, n, features), those at the positions of the
        logits, in a shape that fits `direction`.
    of_heads : callable
        Called with the activations of an attention layer, and the gradients with regard to what
        its heads write; returns shares of its heads, (batch, n_heads, origins, ...).

    Returns
    -------
    list of (component, layer, head, share)
        Shares of all components, as in `LogitAttribution.terms`, in the order of the model.
    tuple of Tensor
        For each attention layer, what `of_heads` has returned; a head's share is the sum over its
        origins.
    """

    def here(x: Any) -> Any:
        return at_positions(x) if isinstance(x, Tensor) and x.ndim == 3 else x

    shares: list[Share] = []
    origins: list[Tensor] = []
    left = list(zip(captured.layer_numbers, captured.layers, strict=True))
    for step in reversed(captured.steps):
        if not isinstance(step, Written):
            shares += _bias(step, direction)
            direction = _before(step, direction, here)
            continue
        inner = direction * here(step.factor)
        if step.norm is not None:
            shares += _bias(step.norm, inner)
            inner = _before(step.norm, inner, here)
        if step.term == "heads":
            number, layer = left.pop()
            if layer.b_O is not None:
                shares.append(("attention_bias", number, None, inner @ layer.b_O))
            origins.append(of_heads(layer, inner))
            heads = enumerate(origins[-1].sum(2).unbind(1))
            shares += [("head", number, index, share) for index, share in heads][::-1]
        else:
            shares.append((step.term, step.layer, None, (inner * here(step.whole)).sum(-1)))
    shares.append(("embedding", None, None, (direction * here(captured.start)).sum(-1)))
    return shares[::-1], tuple(origins[::-1])


def _bias(step: Normed | Mapped | Scaled, direction: Tensor) -> list[Share]:
    """Share of what a step adds, whatever the stream is."""
    bias = None if isinstance(step, Scaled) else step.bias
    return [] if bias is None else [("bias", step.layer, None, direction @ bias)]


def _before(
    step: Normed | Mapped | Scaled, direction: Tensor, here: Callable[[Any], Any]
) -> Tensor:
    """Gradient before a step, with the scale of a norm fixed, from that after it."""
    if isinstance(step, Scaled):
        return direction * step.factor
    if isinstance(step, Mapped):
        return direction @ step.weight.T
    direction = direction * step.gain / here(step.scale)
    return direction if step.mean is None else direction - direction.mean(-1, keepdim=True)


def _by_origin(layer: LayerActivations, direction: Tensor, sentences: Tensor, at: Tensor) -> Tensor:
    """Shares of heads by the tokens that they attend to: (batch, n_heads, n)."""
    back = torch.einsum("bd,hvd->bhv", direction, layer.W_O)
    if layer.gate is not None:
        back = back * layer.gate[sentences, :, at]
    return layer.pattern[sentences, :, at] * torch.einsum("bhv,bhnv->bhn", back, layer.v)


def _require_sum(shares: list[Share], logits: Tensor, captured: ActivationCache) -> None:
    parts = torch.stack([share for *_, share in shares]).double()
    # terms may be larger than what they sum to
    size = parts.abs().sum(0).clamp_min(torch.finfo(logits.dtype).tiny)
    off = float(((parts.sum(0) - logits).abs() / size).max())
    if not off <= SAME:
        raise InvalidArgumentError(
            f"The shares must sum to the model's logit; those of {captured.source} differ by "
            f"{off:.1g} of their size. Capture the same model, whose weights haven't changed since."
        )


def _table(shares: list[Share]) -> pd.DataFrame:
    import pandas as pd

    components, layers, heads, values = zip(*shares, strict=True)
    logits = torch.stack(values, dim=1).double().cpu().numpy()
    batch, k = logits.shape
    return pd.DataFrame(
        {
            "sentence": np.repeat(range(batch), k),
            "component": [*components] * batch,
            "layer": pd.array([*layers] * batch, dtype="Int64"),
            "head": pd.array([*heads] * batch, dtype="Int64"),
            "logit": logits.reshape(-1),
        }
    )
