"""Norms of any family, known by what they return.

Families have norms of their own: means are subtracted or not, the gain is a weight or one more than
it. Which kind a class of norms is shows in the first that is called. Of all others what depends on
their inputs is kept. That they are of this kind is checked at the end of a run, where their steps
are made, together, as an operation on a few numbers takes as long as one on thousands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from capacity.transformer.activations.records.cache import Normed
from capacity.transformer.activations.records.products import (
    Products,
    differences,
    largest,
    sizes_of,
)

# norms compute in float32, whatever their model does
_SLACK = 1e3 * torch.finfo(torch.float32).eps
# where a norm has no attribute for it
_EPS = (1e-5, 1e-6, 1e-12)
# whether means are subtracted, what is added to the variance, and to the weight
_Kind: TypeAlias = tuple[bool, float, int]


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and scale that a LayerNorm takes from each token's features.

    Attributes
    ----------
    x : (..., d)
        The features.
    eps : float
        What it adds to the variance.
    mean, inverse : (..., 1)
        Mean, and reciprocal of the standard deviation, with `eps`.
    """

    x: Tensor
    eps: float
    mean: Tensor
    inverse: Tensor


def layer_norm(
    input: Tensor,
    normalized_shape: list[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> tuple[Tensor, Moments | None]:
    """Compute what `torch.nn.functional.layer_norm` does, and the moments if they are of tokens."""
    output, mean, inverse = torch.native_layer_norm(input, normalized_shape, weight, bias, eps)
    return output, Moments(input, eps, mean, inverse) if len(normalized_shape) == 1 else None


@dataclass(eq=False)
class NormCall:
    """A norm that was called, with what its step is made of at the end of a run.

    Attributes
    ----------
    layer : int or None
        Index of the layer that it belongs to.
    weight, bias : (d,) or None
        The module's own, which may change later.
    eps : float
        What is added to the variance.
    more : int
        What is added to the weight.
    product : (batch, n)
        Product of the norm's input with its gain times `vector`.
    found : (batch, n)
        Product of its output with `vector`.
    mean : (batch, n, 1) or None
        Mean of its input, if it is subtracted.
    size : (batch, n, 1)
        Length of its input; if a mean is subtracted, the reciprocal of the standard deviation.
    vector : (d,)
        Random vector.
    step : Normed
        The step, which is made at the end of a run.
    """

    layer: int | None
    weight: Tensor | None
    bias: Tensor | None
    eps: float
    more: int
    product: Tensor
    found: Tensor
    mean: Tensor | None
    size: Tensor
    vector: Tensor
    step: Normed = field(init=False)

    @property
    def kind(self) -> tuple[Any, ...]:
        """Return what calls have in common whose steps are made together."""
        none = self.weight is None, self.bias is None, self.mean is None
        found = self.found
        return (*none, self.eps, self.more, found.shape, found.dtype, found.device,
                len(self.vector))  # fmt: skip


class Norms:
    """Norms that are called in a run."""

    def __init__(self) -> None:
        # by class, and by which of weight and bias there are: which of the possible kinds it is
        self._kinds: dict[tuple[type[nn.Module], bool, bool], int] = {}
        self._unchecked: list[NormCall] = []

    def fitted(
        self,
        layer: int | None,
        module: nn.Module,
        x: Tensor,
        found: Tensor,
        vector: Tensor,
        moments: Moments | None = None,
    ) -> NormCall | None:
        """Return a norm that was called.

        Parameters
        ----------
        layer : int or None
            Index of the layer that it belongs to.
        module : nn.Module
            The norm, whose attributes ``weight`` and ``bias`` are vectors or missing.
        x : (batch, n, d)
            Its input.
        found : (batch, n)
            Product of its output with `vector`, which shows which kind of norm it is.
        vector : (d,)
            Random vector.
        moments : Moments, optional
            What `torch.native_layer_norm` has computed of `x`, if it was called.

        Returns
        -------
        NormCall or None
            The call; None if neither a LayerNorm nor an RMSNorm computes this output.
        """
        weight, bias = (None if (w := _held(module, name)) is None else w.detach()
                        for name in ("weight", "bias"))  # fmt: skip
        if any(w is not None and w.shape != x.shape[-1:] for w in (weight, bias)):
            return None
        kinds, key = _kinds(module, weight, bias), (type(module), weight is None, bias is None)
        known = self._kinds.get(key)
        if known is not None and layer is not None:
            call = _called(layer, kinds[known], x, weight, bias, found, vector, moments)
            self._unchecked.append(call)
            return call
        for at, kind in enumerate(kinds):
            call = _called(layer, kind, x, weight, bias, found, vector, moments)
            if largest(_expected([call])[0].sub_(found)) <= _SLACK * largest(found):
                self._kinds[key] = at
                return call
        return None

    def unfitting(self) -> int | None:
        """Make all steps; return the layer of the first norm that isn't of the kind of its class.

        None if there is none.
        """
        unchecked, self._unchecked = self._unchecked, []
        sizes = sizes_of([call.found for call in unchecked])
        pairs = [Products(call.found, expected, size) for call, expected, size
                 in zip(unchecked, _expected(unchecked), sizes, strict=True)]  # fmt: skip
        off = zip(unchecked, differences(pairs), strict=True)
        return next((call.layer for call, by in off if not by <= _SLACK), None)


def _held(module: Any, name: str) -> Any:
    """Attribute of a module, or None; modules take long to find that they lack one."""
    for own in (module._parameters, vars(module), module._buffers):
        if name in own:
            return own[name]
    return getattr(module, name) if hasattr(type(module), name) else None


def _kinds(module: nn.Module, weight: Tensor | None, bias: Tensor | None) -> list[_Kind]:
    """Kinds of norm that a module may be, the likeliest first."""
    names = ("eps", "variance_epsilon", "epsilon")
    told = (eps for name in names if (eps := _held(module, name)) is not None)
    # some norms have theirs in their code
    all_eps = [*told][:1] or _EPS
    centred = isinstance(module, nn.LayerNorm) or bias is not None
    return [*product((centred, not centred), all_eps, (0,) if weight is None else (0, 1))]


def _called(
    layer: int | None,
    kind: _Kind,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    found: Tensor,
    vector: Tensor,
    moments: Moments | None,
) -> NormCall:
    """A call, if the norm is of some kind."""
    centred, eps, more = kind
    gained = vector if weight is None else _gain(weight, more) * vector
    # the product of the output with the vector, without the output
    product, mean = x @ gained, None
    if centred:
        if moments is None or moments.eps != eps:
            _, of_x, inverse = torch.native_layer_norm(x, x.shape[-1:], None, None, eps)
            moments = Moments(x, eps, of_x, inverse)
        mean = moments.mean.view(*x.shape[:-1], 1)
        size = moments.inverse.view(*x.shape[:-1], 1)
    else:
        size = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return NormCall(layer, weight, bias, eps, more, product, found, mean, size, vector)


def _gain(weight: Tensor, more: int) -> Tensor:
    return weight + more if more else weight


def _expected(calls: Sequence[NormCall]) -> list[Tensor]:
    """Make the steps of calls; return for each the product of its output with the vector."""
    alike: dict[Any, list[NormCall]] = {}
    for call in calls:
        alike.setdefault(call.kind, []).append(call)
    found = {id(call): expected for some in alike.values()
             for call, expected in zip(some, _expected_of(some), strict=True)}  # fmt: skip
    return [found[id(call)] for call in calls]


def _expected_of(calls: Sequence[NormCall]) -> Tensor:
    one, expected = calls[0], torch.stack([call.product for call in calls])
    of_each = [len(calls), *[1] * one.product.ndim]
    # copies: the model may be trained further
    gains = _gain(_stacked([call.weight for call in calls], one.vector), one.more)
    means, sizes = None, torch.stack([call.size for call in calls])
    if one.mean is None:
        scales = sizes.square_().div_(len(one.vector)).add_(one.eps).sqrt_()
    else:
        means = _stacked([call.mean for call in calls], one.mean)
        scales = sizes.reciprocal_()
        expected -= means[..., 0] * (gains @ one.vector).view(of_each)
    expected /= scales[..., 0]
    biases = None
    if one.bias is not None:
        biases = _stacked([call.bias for call in calls], one.bias)
        expected += (biases @ one.vector).view(of_each)
    for at, call in enumerate(calls):
        mean, bias = (None if x is None else x[at] for x in (means, biases))
        call.step = Normed(call.layer, mean, scales[at], gains[at], bias)
    return expected


def _stacked(tensors: Sequence[Tensor | None], like: Tensor) -> Tensor:
    """Tensors, or ones in their place."""
    return torch.stack([torch.ones_like(like) if x is None else x for x in tensors])
