"""Linearity of feed-forward sublayers: r^2 of the best affine map from input to output.

Mickus et al. (2022, section 2.3, Figure 2) fit a least-squares regression from the z-scaled inputs
of a feed-forward to its z-scaled outputs. With an intercept, r^2 doesn't depend on the scaling of
inputs, and the z-scaling of outputs makes it the plain mean over features. Only second moments are
kept, in float64, so that a corpus of any length takes the memory of one batch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.cache import ActivationCache, Written


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over tokens, for one layer: of x x^T, x y^T and y^2, with a 1 appended to x.

    Attributes
    ----------
    xx : (d_model + 1, d_model + 1)
    xy : (d_model + 1, d_model)
    yy : (d_model,)
    """

    xx: Float[Tensor, "d1 d1"]
    xy: Float[Tensor, "d1 d_out"]
    yy: Float[Tensor, "d_out"]

    def __add__(self, other: Moments) -> Moments:
        """Moments of both sets of tokens."""
        return Moments(self.xx + other.xx, self.xy + other.xy, self.yy + other.yy)

    def cpu(self) -> Moments:
        """The same where LAPACK is."""
        return Moments(self.xx.cpu(), self.xy.cpu(), self.yy.cpu())

    @property
    def n_tokens(self) -> int:
        """Number of tokens."""
        return int(self.xx[-1, -1])


@torch.no_grad()
def feed_forward_moments(batches: Iterable[ActivationCache]) -> list[Moments]:
    """Sum the moments of every feed-forward over batches of sentences.

    Parameters
    ----------
    batches : iterable of Captured
        All of one model.

    Returns
    -------
    list of Moments
        One a layer; empty for a model without feed-forwards.
    """
    total: list[Moments] = []
    for captured in batches:
        new = [
            _moments(step.input[captured.mask], step.output[captured.mask])
            for step in captured.steps
            if isinstance(step, Written) and step.input is not None
        ]
        total = [a + b for a, b in zip(total, new, strict=True)] if total else new
    return total


def _moments(x: Tensor, y: Tensor) -> Moments:
    x, y = torch.nn.functional.pad(x.double(), (0, 1), value=1.0), y.double()
    return Moments(x.T @ x, x.T @ y, y.square().sum(0))


def feed_forward_r2(fitted: Moments, on: Moments | None = None) -> float:
    """r^2 of the least-squares affine map, averaged over output features.

    Parameters
    ----------
    fitted : Moments
        Of the tokens that the map is fitted to.
    on : Moments, optional
        Of the tokens that it is scored on; the same by default, which flatters it when tokens are
        few.

    Raises
    ------
    InvalidArgumentError
        Unless there are more tokens than features; fewer are always fitted. If no output varies.
    """
    d = len(fitted.xx) - 1
    if fitted.n_tokens <= d + 1:
        raise InvalidArgumentError(
            f"A linear fit of {d} features needs more than {d + 1} tokens; got {fitted.n_tokens}."
        )
    fitted, on = fitted.cpu(), (on or fitted).cpu()
    # unit diagonal, for features of very different sizes
    size = fitted.xx.diagonal().sqrt()
    size = torch.where(size > 0, size, 1.0)
    gram = fitted.xx / size[:, None] / size
    weights = torch.linalg.lstsq(gram, fitted.xy / size[:, None], driver="gelsd").solution
    weights = weights / size[:, None]
    left = on.yy - 2 * (weights * on.xy).sum(0) + (weights * (on.xx @ weights)).sum(0)
    spread = on.yy - on.xy[-1].square() / on.n_tokens
    # a feature that never varies has nothing to explain
    varies = spread > 1e-12 * on.yy
    if not varies.any():
        raise InvalidArgumentError("r^2 is a share of variance, and no output feature varies.")
    return float((1 - left[varies] / spread[varies]).mean())
