"""Norms of any family, known by what they return.

Families have norms of their own: means are subtracted or not, the gain is a weight or one more than
it. Which kind a class of norms is shows in the first that is called. That all others are of this
kind is checked at the end of a run, together, as an operation on a few numbers takes as long as one
on thousands.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    eps : float
        What it adds to the variance.
    mean, inverse : (..., 1)
        Mean, and reciprocal of the standard deviation, with `eps`.
    """

    eps: float
    mean: Tensor
    inverse: Tensor


class Norms:
    """Norms that are called in a run."""

    def __init__(self) -> None:
        # by class, and by which of weight and bias there are: which of the possible kinds it is
        self._kinds: dict[tuple[type[nn.Module], bool, bool], int] = {}
        self._unchecked: list[tuple[int, Tensor, Tensor]] = []

    def fitted(
        self,
        layer: int | None,
        module: nn.Module,
        x: Tensor,
        found: Tensor,
        vector: Tensor,
        moments: Moments | None = None,
    ) -> Normed | None:
        """Return the step of a norm that was called.

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
        Normed or None
            The step that computes this output; None if neither a LayerNorm nor an RMSNorm does.
        """
        held = _held(module)
        weight, bias = (None if (w := held(name)) is None else w.detach()
                        for name in ("weight", "bias"))  # fmt: skip
        if any(w is not None and w.shape != x.shape[-1:] for w in (weight, bias)):
            return None
        kinds, key = _kinds(module, weight, bias), (type(module), weight is None, bias is None)
        known = self._kinds.get(key)
        if known is not None and layer is not None:
            step, expected = _step(layer, kinds[known], x, weight, bias, vector, moments)
            self._unchecked.append((layer, found, expected))
            return step
        for at, kind in enumerate(kinds):
            step, expected = _step(layer, kind, x, weight, bias, vector, moments)
            if largest(expected.sub_(found)) <= _SLACK * largest(found):
                self._kinds[key] = at
                return step
        return None

    def unfitting(self) -> int | None:
        """Layer of the first norm that isn't of the kind of its class; None if there is none."""
        unchecked, self._unchecked = self._unchecked, []
        sizes = sizes_of([found for _, found, _ in unchecked])
        pairs = [Products(found, expected, size)
                 for (_, found, expected), size in zip(unchecked, sizes, strict=True)]  # fmt: skip
        off = zip(unchecked, differences(pairs), strict=True)
        return next((layer for (layer, _, _), by in off if not by <= _SLACK), None)


def _held(module: Any) -> Any:
    """Attributes of a module by their names; modules take long to find that they lack one."""
    own = {**module._buffers, **module._parameters, **vars(module)}
    of_class = type(module)
    return lambda name: getattr(module, name) if name in own or hasattr(of_class, name) else None


def _kinds(module: nn.Module, weight: Tensor | None, bias: Tensor | None) -> list[_Kind]:
    """Kinds of norm that a module may be, the likeliest first."""
    held = _held(module)
    told = (
        eps for name in ("eps", "variance_epsilon", "epsilon") if (eps := held(name)) is not None
    )
    # some norms have theirs in their code
    all_eps = [*told][:1] or _EPS
    centred = isinstance(module, nn.LayerNorm) or bias is not None
    return [*product((centred, not centred), all_eps, (0,) if weight is None else (0, 1))]


def _step(
    layer: int | None,
    kind: _Kind,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    vector: Tensor,
    moments: Moments | None,
) -> tuple[Normed, Tensor]:
    """Step of a norm of some kind, and the product of its output with a vector."""
    centred, eps, more = kind
    gain = torch.ones_like(vector) if weight is None else weight + more if more else weight.clone()
    # the product of the output with the vector, without the output
    expected, mean = x @ (gain * vector), None
    if centred:
        if moments is None or moments.eps != eps:
            _, of_x, inverse = torch.native_layer_norm(x, x.shape[-1:], None, None, eps)
            moments = Moments(eps, of_x, inverse)
        mean = moments.mean.view(*x.shape[:-1], 1)
        scale = moments.inverse.view(*x.shape[:-1], 1).reciprocal()
        expected -= mean[..., 0] * (gain @ vector)
    else:
        scale = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        scale = scale.square_().div_(x.shape[-1]).add_(eps).sqrt_()
    expected /= scale[..., 0]
    if bias is not None:
        expected += bias @ vector
    # copies: the model may be trained further
    return Normed(layer, mean, scale, gain, None if bias is None else bias.clone()), expected
