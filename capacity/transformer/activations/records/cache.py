"""Activations of a transformer on some sentences: heads, and steps of the residual stream.

The residual stream is stored as its initial value and the steps that change it, in order. Once the
scales of norms are known every step is affine in the stream, so that e = i + h + f + c is exact
(Mickus et al. 2022, equation 1). Layers and heads are counted from 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.records.heads import LayerActivations


@briefly_shown
@dataclass(frozen=True, eq=False)
class Normed:
    """Norm on the residual stream: x becomes gain * (x - mean) / scale + bias.

    Attributes
    ----------
    layer : int or None
        Index of the layer that the norm belongs to, counted from 0; None for a norm of the
        embeddings, before the first layer.
    mean : (batch, n, 1) or None
        Mean over features; None if none is subtracted (RMSNorm).
    scale : (batch, n, 1)
        Standard deviation over features, or their root mean square, with the norm's epsilon.
    gain : (d_model,)
        Learned factor of each feature.
    bias : (d_model,) or None
        Learned shift of each feature.
    """

    layer: int | None
    mean: Float[Tensor, "batch n 1"] | None
    scale: Float[Tensor, "batch n 1"]
    gain: Float[Tensor, "d_model"]
    bias: Float[Tensor, "d_model"] | None

    def applied_to(self, stream: Tensor) -> Tensor:
        """The residual stream after this step."""
        stream = stream if self.mean is None else stream - self.mean
        stream = self.gain * (stream / self.scale)
        return stream if self.bias is None else stream + self.bias


@briefly_shown
@dataclass(frozen=True, eq=False)
class Written:
    """Addition of a sublayer's output to the residual stream.

    Attributes
    ----------
    layer : int
        Index of the layer, counted from 0.
    term : {"heads", "feed_forward", "mixers"}
        Kind of the sublayer; mixers move what tokens hold without attention, as Mamba and
        convolutions do in hybrids.
    whole : (batch, n, d_model)
        Output, with ``bias``.
    last : (d_model,) or None
        Bias of the sublayer's last linear module, b_O for heads.
    input : (batch, n, d_model) or None
        Input of a feed-forward sublayer; None for heads, and where it isn't known.
    norm : Normed or None
        Norm of the sublayer's output, with its bias, before it is added, as in Gemma 2.
    factor : float or (d_model,)
        Factor of what is added, after that norm, as in Granite; 1 in most models.
    passed : pair of (heads, d_head_vo) and (heads, d_head_vo, d_model), or None
        b_V and W_O of heads: rows of A sum to 1, and pass the bias of values on as it is.
    """

    layer: int
    term: Literal["heads", "feed_forward", "mixers"]
    whole: Float[Tensor, "batch n d_model"]
    last: Float[Tensor, "d_model"] | None
    input: Float[Tensor, "batch n d_model"] | None = None
    norm: Normed | None = None
    factor: float | Float[Tensor, "d_model"] = 1.0
    passed: tuple[Tensor, Tensor] | None = None

    def applied_to(self, stream: Tensor) -> Tensor:
        """The residual stream after this step."""
        added = self.whole if self.norm is None else self.norm.applied_to(self.whole)
        return stream + self.factor * added

    @cached_property
    def bias(self) -> Float[Tensor, "d_model"] | None:
        """Bias of the sublayer; for heads b_V W_O + b_O."""
        if self.passed is None:
            return self.last
        b_V, W_O = self.passed
        of_values = b_V.flatten() @ W_O.flatten(0, 1)
        return of_values if self.last is None else of_values + self.last

    @property
    def output(self) -> Float[Tensor, "batch n d_model"]:
        """Output without ``bias``."""
        return self.whole if self.bias is None else self.whole - self.bias

    @property
    def gain(self) -> Float[Tensor, "batch n d_model"] | float:
        """Factor of `output` in what is added."""
        return self.factor if self.norm is None else self.factor * self.norm.gain / self.norm.scale

    def constant(self) -> Float[Tensor, "batch n d_model"] | None:
        """Biases and means that are added beside ``gain * output``; None if there are none."""
        parts = [] if self.bias is None else [self.gain * self.bias]
        if self.norm is not None:
            if self.norm.mean is not None:
                parts.append(-self.gain * self.norm.mean)
            if self.norm.bias is not None:
                parts.append(self.factor * self.norm.bias)
        return sum(parts[1:], start=parts[0]) if parts else None


@dataclass(frozen=True, eq=False)
class Mapped:
    """Affine map of the residual stream, such as ALBERT's from embeddings to hidden states.

    Attributes
    ----------
    layer : int or None
        Index of the layer that the map belongs to, counted from 0; None before the first layer.
    weight : (d_in, d_out)
        Matrix that acts from the right.
    bias : (d_out,) or None
        Vector that is added afterwards.
    """

    layer: int | None
    weight: Float[Tensor, "d_in d_out"]
    bias: Float[Tensor, "d_out"] | None

    def applied_to(self, stream: Tensor) -> Tensor:
        """The residual stream after this step."""
        stream = stream @ self.weight
        return stream if self.bias is None else stream + self.bias


@dataclass(frozen=True, eq=False)
class Scaled:
    """Product of the residual stream with fixed numbers, as in Gemma 4, MiniMax and Doge.

    Attributes
    ----------
    layer : int
        Index of the layer, counted from 0.
    factor : (1,) or (d_model,)
        One number, or one for each feature.
    """

    layer: int
    factor: Float[Tensor, "features"]

    def applied_to(self, stream: Tensor) -> Tensor:
        """The residual stream after this step."""
        return stream * self.factor


Step = Written | Normed | Mapped | Scaled


@briefly_shown
@dataclass(frozen=True, eq=False)
class ActivationCache:
    """Activations of a model on a batch of sentences.

    Attributes
    ----------
    layers : tuple of LayerActivations
        Attention layers, from the first to the last; a hybrid has others between them.
    mask : (batch, n) bool
        True for tokens, False for padding.
    causal : bool
        True if tokens attend to themselves and earlier tokens only.
    start : (batch, n, d_embedding)
        Initial residual stream: embeddings of tokens, positions and segments.
    steps : tuple of Written, Normed, Mapped and Scaled
        Changes of the residual stream, in order.
    source : str
        Name of the model's class.
    keys : (batch, n_keys) bool or None
        The mask of what tokens attend to, for attention across two sequences; None: themselves.
    unfollowed : str or None
        Why the residual stream couldn't be followed, where there are no steps.
    last : (batch, n, d_model) or None
        The model's last embeddings, with which the sum of terms is compared.
    chosen : pair of tuples of int, or None
        Indices of `layers` in the model and of their heads; None for either if all were asked for,
        and all layers attend.
    hooked : bool
        Whether others had registered hooks on the model, which may change its activations.
    """

    layers: tuple[LayerActivations, ...]
    mask: Bool[Tensor, "batch n"]
    causal: bool
    start: Float[Tensor, "batch n d_embedding"]
    steps: tuple[Step, ...]
    source: str
    keys: Bool[Tensor, "batch n_keys"] | None = None
    unfollowed: str | None = None
    last: Float[Tensor, "batch n d_model"] | None = None
    chosen: tuple[tuple[int, ...] | None, tuple[int, ...] | None] = (None, None)
    hooked: bool = False

    @property
    def n_layers(self) -> int:
        """Number of attention layers that were kept."""
        return len(self.layers)

    @property
    def layer_numbers(self) -> tuple[int, ...]:
        """Index of each of `layers` in the model."""
        return self.chosen[0] or tuple(range(self.n_layers))

    @property
    def head_numbers(self) -> tuple[int, ...]:
        """Index of each head in its layer."""
        return self.chosen[1] or tuple(range(self.layers[0].v.shape[1]))

    @property
    def outputs_of_heads(self) -> tuple[Written, ...]:
        """Additions of the heads to the residual stream, one for each layer."""
        steps = (step for step in self.steps if isinstance(step, Written))
        return tuple(step for step in steps if step.term == "heads")

    @property
    def key_mask(self) -> Bool[Tensor, "batch n_keys"]:
        """True for what tokens attend to, False for padding; `mask` but across sequences."""
        return self.mask if self.keys is None else self.keys

    @cached_property
    def n_tokens(self) -> tuple[int, ...]:
        """Number of tokens of each sentence that are attended to, without padding."""
        return tuple(self.key_mask.sum(dim=1).tolist())

    @property
    def n_rows(self) -> tuple[int, ...]:
        """Number of tokens of each sentence that attend, without padding."""
        return tuple(self.mask.sum(dim=1).tolist())

    def streams(self) -> Iterator[Float[Tensor, "batch n d_model"]]:
        """Yield the residual stream as it enters each layer of the model, and the last embeddings.

        The last of these n_layers + 1 have gone through the norm that follows the last layer of
        most decoders; the others have not.

        Raises
        ------
        InvalidArgumentError
            If the residual stream isn't known.
        """
        self.require_steps()
        stream, n_layers = self.start, 0
        for step in self.steps:
            while step.layer is not None and step.layer >= n_layers:
                yield stream
                n_layers += 1
            stream = step.applied_to(stream)
        yield stream if self.last is None else self.last

    def require_source(self, model: nn.Module) -> None:
        """Refuse a cache of a model of another class.

        Raises
        ------
        InvalidArgumentError
            With both classes.
        """
        model = getattr(model, "_orig_mod", model)
        names = [type(one).__name__ for one in (model, getattr(model, "base_model", model))]
        if self.source not in names:
            raise InvalidArgumentError(
                f"Activations must be of the model that they are used with, a {names[0]}; got "
                f"those of a {self.source}. Capture the same model."
            )

    def require_steps(self) -> None:
        """Refuse a cache whose residual stream isn't known.

        Raises
        ------
        InvalidArgumentError
            With the reason.
        """
        if not self.steps:
            raise InvalidArgumentError(
                self.unfollowed
                or f"The residual stream must be known; that of {self.source} wasn't recorded. "
                "Capture the model itself."
            )


def written_by_heads(index: int, layer: LayerActivations, output: Tensor | None = None) -> Written:
    """Addition of a layer's heads to the residual stream.

    Parameters
    ----------
    index : int
        Index of the layer, counted from 0.
    layer : LayerActivations
        Its heads.
    output : (batch, n, d_model), optional
        Joint output of the heads with all biases; computed if omitted.

    Returns
    -------
    Written
        The sum of the heads' outputs, and the biases.
    """
    if output is None:
        output = torch.einsum("bhnv,hvd->bnd", layer.gated, layer.W_O)
        output = output if layer.b_O is None else output + layer.b_O
    passed = None if layer.b_V is None else (layer.b_V, layer.W_O)
    return Written(index, "heads", output, layer.b_O, passed=passed)


def normed(index: int | None, norm: nn.Module, stream: Float[Tensor, "batch n d_model"]) -> Normed:
    """Step of a LayerNorm or RMSNorm on a residual stream, for the layer with the given index."""
    known: Any = norm
    mean = stream.mean(-1, keepdim=True) if isinstance(norm, nn.LayerNorm) else None
    eps = known.eps if isinstance(norm, nn.LayerNorm) else known.variance_epsilon
    centred = stream if mean is None else stream - mean
    scale = (centred.square().mean(-1, keepdim=True) + eps).sqrt()
    # copies: the model may be trained further
    gain = torch.ones_like(stream[0, 0]) if known.weight is None else known.weight.detach().clone()
    bias = getattr(norm, "bias", None)
    return Normed(index, mean, scale, gain, None if bias is None else bias.detach().clone())
