"""Linearity of feed-forward sublayers: r^2 of the best affine map from input to output.

Mickus et al. (2022, section 2.3, Figure 2) fit a least-squares regression from the z-scaled inputs
of a feed-forward to its z-scaled outputs. With an intercept r^2 doesn't depend on the scaling of
inputs, and z-scaled outputs make it the plain mean over features. Only second moments are stored,
in float64, so that a corpus of any length takes the memory of one batch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.records.cache import ActivationCache, Written


@briefly_shown
@dataclass(frozen=True, eq=False)
class Moments:
    """Second moments of a feed-forward's inputs x and outputs y: sums over tokens, for one layer.

    Attributes
    ----------
    xx : (d_model + 1, d_model + 1)
        Sum of x x^T, with a 1 appended to x.
    xy : (d_model + 1, d_model)
        Sum of x y^T, with a 1 appended to x.
    yy : (d_model,)
        Sum of the squares of y.
    """

    xx: Float[Tensor, "d1 d1"]
    xy: Float[Tensor, "d1 d_out"]
    yy: Float[Tensor, "d_out"]

    def __add__(self, other: Moments) -> Moments:
        """Moments of both sets of tokens together."""
        return Moments(self.xx + other.xx, self.xy + other.xy, self.yy + other.yy)

    def cpu(self) -> Moments:
        """Copy on the CPU, where LAPACK solves the regression."""
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
    batches : iterable of ActivationCache
        Activations of one model, such as `capture` returns for each batch.

    Returns
    -------
    list of Moments
        One for each layer; empty for a model without feed-forwards.

    Examples
    --------
    >>> from capacity.transformer import EncoderClassifier, EncoderConfig
    >>> model = EncoderClassifier(EncoderConfig(20, 2, 16, 4, 2, 2, 8, "add"))
    >>> batches = (model.capture(torch.arange(n)[None]) for n in (10, 16))
    >>> [moments.n_tokens for moments in feed_forward_moments(batches)]
    [26]
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
    """Compute r^2 of the least-squares affine map, averaged over output features.

    Parameters
    ----------
    fitted : Moments
        Moments of the tokens that the map is fitted to.
    on : Moments, optional
        Moments of the tokens that it is scored on; by default the same, which overestimates r^2 if
        tokens are few.

    Returns
    -------
    float
        Explained share of the variance, 1 for an affine feed-forward; below 0 if the map does worse
        on other tokens than their mean.

    Raises
    ------
    InvalidArgumentError
        If there aren't more tokens than coefficients of an output feature, d_model + 1, or no
        output varies.

    Examples
    --------
    A feed-forward whose hidden units are all active is affine:

    >>> from capacity.transformer import EncoderClassifier, EncoderConfig
    >>> model = EncoderClassifier(EncoderConfig(20, 2, 16, 4, 2, 2, 8, "add"))
    >>> tokens = torch.arange(16)[None]
    >>> bent = feed_forward_moments([model.capture(tokens)])[0]
    >>> with torch.no_grad():
    ...     _ = model.b_1.add_(10)
    >>> straight = feed_forward_moments([model.capture(tokens)])[0]
    >>> feed_forward_r2(bent) < 0.99, round(feed_forward_r2(straight), 6)
    (True, 1.0)
    """
    d = len(fitted.xx) - 1
    if fitted.n_tokens <= d + 1:
        raise InvalidArgumentError(
            f"A linear fit of {d} features needs more than {d + 1} tokens; got {fitted.n_tokens}. "
            "Add sentences."
        )
    fitted, on = fitted.cpu(), (on or fitted).cpu()
    # a unit diagonal conditions the system if features have very different sizes
    size = fitted.xx.diagonal().sqrt()
    size = torch.where(size > 0, size, 1.0)
    gram = fitted.xx / size[:, None] / size
    weights = torch.linalg.lstsq(gram, fitted.xy / size[:, None], driver="gelsd").solution
    weights = weights / size[:, None]
    left = on.yy - 2 * (weights * on.xy).sum(0) + (weights * (on.xx @ weights)).sum(0)
    spread = on.yy - on.xy[-1].square() / on.n_tokens
    # a constant feature has no variance to explain
    varies = spread > 1e-12 * on.yy
    if not varies.any():
        raise InvalidArgumentError(
            "Some output must vary, as r^2 is a share of variance; no output feature varies on "
            "these tokens. Add sentences."
        )
    return float((1 - left[varies] / spread[varies]).mean())
