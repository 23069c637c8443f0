"""Other attention with the same output, A + A~ under P1-P3.

The construction of Brunner et al. (2019), with which Bhardwaj et al. (2021, Figure 5) argue for P4:
what it finds needs logits of rank n - 1, as `minimum_logit_rank` says, where a head can make rank
d_head_qk. That is no proof that other attention under P4 doesn't exist:
`capacity.transformer.identifiability.witness` finds some.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from capacity.errors import InvalidArgumentError
from capacity.limits import Seed, integer_seed
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

    Each row of A~ is a combination of an orthonormal basis of LN([T, 1]), scaled up or down as far
    as A + A~ >= 0 allows. Coefficients are uniform about 0; the paper's are from [-10, 10], a width
    that cancels in the scaling. A row that has a 0 where its combination is negative, such as a
    one-hot row, gets A~ = 0. In a causal model rows see no future: give the tokens that a row sees,
    as ``alternative_attention(A[i - 1 : i, :i], T[:i])``.

    Parameters
    ----------
    pattern : (rows, n)
        Rows of attention of one head and sentence, without padding.
    T : (n, d)
        V W_O, or any matrix with the same left null space; as exact as its dtype says: what was
        multiplied in float32 and cast to float64 has its rounding counted as rank.
    seed : int or numpy.random.Generator
        Of the coefficients.
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
            f"{n} tokens. Their attention is unique; longer sentences have alternatives."
        )
    generator = torch.Generator().manual_seed(integer_seed(seed))
    shares = torch.rand(len(pattern), null.shape[1], generator=generator, dtype=null.dtype)
    change = (2 * shares.to(null) - 1) @ null.T
    # entries that grow set no limit
    limits = torch.where(change < 0, pattern / -change, torch.inf)
    change = reach * limits.amin(dim=1, keepdim=True) * change
    # what the product rounded below 0
    return torch.maximum(change.to(pattern.dtype), -pattern)
