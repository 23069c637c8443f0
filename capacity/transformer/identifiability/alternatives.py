"""Other attention with the same output: A + A~ under P1-P3.

This is the construction of Brunner et al. (2019), with which Bhardwaj et al. (2021, Figure 5) argue
for P4: its results need logits of rank n - 1 (`minimum_logit_rank`), while those of a head have
rank d_head_qk at most. That doesn't prove that no other attention satisfies P4:
`capacity.transformer.identifiability.witness` finds some. P1 to P4 stand in
`capacity.transformer.identifiability.logit_rank`.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from capacity.checks import Seed, integer_seed
from capacity.errors import InvalidArgumentError
from capacity.transformer.identifiability.logit_rank import column_space


@torch.no_grad()
def alternative_attention(
    pattern: Float[Tensor, "rows n"],
    T: Float[Tensor, "n d"],
    *,
    seed: Seed = 0,
    reach: float = 0.99,
) -> Float[Tensor, "rows n"]:
    """Draw A~ with A + A~ >= 0, A~ T = 0 and A~ 1 = 0 (P1-P3).

    Each row of A~ is a random combination of an orthonormal basis of LN([T, 1]), scaled as far as
    A + A~ >= 0 allows. Coefficients are uniform about 0; the paper draws them from [-10, 10], a
    width that cancels in the scaling. A row that has a 0 where its combination is negative, such as
    a one-hot row, gets A~ = 0. In a causal model row i depends on tokens 0 ... i alone: give these,
    as ``alternative_attention(A[i : i + 1, : i + 1], T[: i + 1])``.

    Parameters
    ----------
    pattern : (rows, n)
        Rows of attention of one head and sentence, without padding.
    T : (n, d)
        V W_O, or any matrix with the same left null space. Its dtype sets the rank threshold: the
        rounding of a product in float32 counts as rank once it is cast to float64.
    seed : int or numpy.random.Generator
        Seed of the coefficients.
    reach : float
        Share of the largest possible scaling, in (0, 1]. Below 1 no positive entry becomes 0, so
        that A + A~ has logits.

    Returns
    -------
    (rows, n)
        A~, in the pattern's dtype.

    Raises
    ------
    InvalidArgumentError
        If LN([T, 1]) is {0}, or an argument is out of range.

    References
    ----------
    Bhardwaj et al. 2021, section 3.2.2, "Experimental evidence".

    Examples
    --------
    >>> pattern = torch.softmax(torch.arange(12.0).view(3, 4) % 5, dim=1)
    >>> T = torch.tensor([[1.0], [2.0], [2.0], [5.0]])
    >>> change = alternative_attention(pattern, T, seed=0)
    >>> bool((pattern + change > 0).all()), bool(change.norm() > 0.01)
    (True, True)
    >>> torch.allclose((pattern + change) @ T, pattern @ T)
    True
    """
    if pattern.ndim != 2 or T.ndim != 2 or pattern.shape[1] != len(T):
        raise InvalidArgumentError(
            "`pattern` must have the shape (rows, n) and `T` the shape (n, d), of one head and "
            f"sentence; got {tuple(pattern.shape)} and {tuple(T.shape)}."
        )
    if not 0 < reach <= 1:
        raise InvalidArgumentError(f"`reach` must be in (0, 1]; got {reach}.")
    n = len(T)
    span = column_space(T, centred=True)
    reached = torch.cat([torch.ones(n, 1).to(span), span], dim=1)
    null = torch.linalg.qr(reached, mode="complete").Q[:, reached.shape[1] :]
    if not null.shape[1]:
        raise InvalidArgumentError(
            f"LN([T, 1]) must have other elements than 0; its dimension is {n} - {n} = 0 for these "
            f"{n} tokens, whose attention is unique. Take a longer sentence."
        )
    generator = torch.Generator().manual_seed(integer_seed(seed))
    shares = torch.rand(len(pattern), null.shape[1], generator=generator, dtype=null.dtype)
    change = (2 * shares.to(null) - 1) @ null.T
    # entries that grow set no limit
    limits = torch.where(change < 0, pattern / -change, torch.inf)
    change = reach * limits.amin(dim=1, keepdim=True) * change
    # entries that rounding made negative
    return torch.maximum(change.to(pattern.dtype), -pattern)
