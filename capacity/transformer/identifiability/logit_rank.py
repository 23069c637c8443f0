"""P4: attention must come from logits of rank at most d_head_qk, which most attention does not.

Attention A with A T = H is *unidentifiable* if some other A + A~ has the same output. For softmax
the conditions on A~ are (Bhardwaj et al. 2021, section 3.2.2)

    A + A~ >= 0 (P1),    A~ T = 0 (P2),    A~ 1 = 0 (P3),
    A + A~ = softmax(A_l) for some A_l of rank d_head_qk at most (P4).

The paper postulates that with P4 A is the more identifiable the smaller d_head_qk is. Here
dimensions are counted (`p4_excess`), and computed at given queries and keys (`p4_defect`). At
d_head_qk = d_head_vo = d the postulate doesn't help: for generic T the excess is d (n - 1 - d),
positive as soon as LN([T, 1]) isn't {0}. Everything here is about bidirectional attention.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from capacity.errors import InvalidArgumentError


def p4_excess(n: int, d_head_qk: int, rank_simplex: int) -> int:
    """Compute the dimension of the attention that P4 allows, less the number of its constraints.

    Row shifts c 1^T of the logits don't change A, so only A_l P matters, P = I - 1 1^T / n. The
    A_l P are all n x n matrices M with M 1 = 0 of rank r = min(d_head_qk, n - 1) at most, a variety
    of dimension r (n + (n - 1) - r) = r (2n - 1 - r), and softmax maps them one to one to A. For
    rows that sum to 0, P2 means A~ P T = 0: n rank(P T) = n (rank[T, 1] - 1) equations. A smooth
    map from more dimensions to fewer has fibres of positive dimension, so if

        r (2n - 1 - r) - n (rank[T, 1] - 1) > 0

    then A is not unique under P1-P4: a continuum of other attention near A has the same output.
    This holds for all queries and keys but a set of measure zero. That A is locally unique
    otherwise is not proved: `p4_defect` decides it for given queries and keys, and agreed on all
    random ones.

    P4 restricts the rank of logits alone. Where a sentence is longer than the rank of its inputs,
    queries and keys can't be chosen freely, and A may be unique in spite of an excess.

    Parameters
    ----------
    n : int
        Number of tokens.
    d_head_qk : int
        Size of a head's queries and keys.
    rank_simplex : int
        rank[T, 1], from 1 to n.

    Returns
    -------
    int
        Above 0 if A is not unique under P1-P4.

    Raises
    ------
    InvalidArgumentError
        If a number is below 1, or ``rank_simplex`` above n.

    Examples
    --------
    >>> p4_excess(128, d_head_qk=64, rank_simplex=65)
    4032
    >>> p4_excess(128, d_head_qk=16, rank_simplex=65)
    -4368
    """
    if n < 1 or d_head_qk < 1 or not 1 <= rank_simplex <= n:
        raise InvalidArgumentError(
            "The number of tokens and `d_head_qk` must be at least 1, and `rank_simplex` between 1 "
            f"and the number of tokens; got {n}, {d_head_qk} and {rank_simplex}."
        )
    r = min(d_head_qk, n - 1)
    return r * (2 * n - 1 - r) - n * (rank_simplex - 1)


@torch.no_grad()
def p4_defect(
    q: Float[Tensor, "n d_head_qk"],
    k: Float[Tensor, "n d_head_qk"],
    T: Float[Tensor, "n d"],
    *,
    scale: float,
) -> int:
    """Compute the dimension of the first-order changes of A, by q and k, that leave A T unchanged.

    This is rank(J_A) - rank(J_AT) for the Jacobians of (q, k) -> A = softmax(scale q k^T) and of
    (q, k) -> A T. With a_i the rows of A and S_i = diag(a_i) - a_i^T a_i,

        dA_i = scale (dq_i k^T + q_i dk^T) S_i.

    S_i is one to one on rows that sum to 0, so J_A has the rank of (dq, dk) -> (dq k^T + q dk^T) P,
    whose image R^n (x) col(P k) + col(q) (x) 1^perp has dimension
    n r_k + (n - 1) r_q - r_q r_k, where r_q = rank q and r_k = rank(P k).
    The rank of J_AT depends on q, P k and S_i U through their column spaces only (U a basis of
    col(P T)). Orthonormal bases replace all three, and dk^T varies in the complement of 1 and
    col(P k), which is all that dq k^T doesn't reach: so unequal scales and sharp attention don't
    spoil the numerical rank of the remaining rank(J_A) columns.

    With q and P k of full rank the defect is at least max(0, `p4_excess`), and it was equal to that
    on random ones with n up to 24 and d_head_qk of 2 and more. With d_head_qk = 1 the numbers
    exp(q_i k_j) are a smooth kernel on a line, whose numerical rank falls short of n at about 20
    tokens; then the defect also counts changes that float64 doesn't distinguish from 0.

    Cost: an SVD with n rank(P T) rows and 2 n d_head_qk columns at most; under a second at 40
    tokens and heads of size 32.

    Parameters
    ----------
    q, k : (n, d_head_qk)
        Queries and keys of one head and sentence, bidirectional, without padding.
    T : (n, d)
        V W_O, or any matrix with the same left null space, such as V if W_O has full rank. Its
        dtype sets the rank threshold: rounding in float32 counts as rank if cast to float64.
    scale : float
        Factor of the logits.

    Returns
    -------
    int
        0 if A is locally unique to first order; otherwise A is unidentifiable under P1-P4, for q
        and k outside a set of measure zero.

    Raises
    ------
    InvalidArgumentError
        If the shapes don't fit.

    Examples
    --------
    >>> generator = torch.Generator().manual_seed(0)
    >>> q, k, T = (torch.randn(8, 2, generator=generator) for _ in range(3))
    >>> p4_defect(q, k, T, scale=1.0), p4_excess(8, d_head_qk=2, rank_simplex=3)
    (10, 10)
    """
    require_one_head(q, k, T)
    n = q.shape[0]
    pattern = attention(q.double(), k.double(), scale)
    left, right = column_space(q), column_space(k, centred=True)
    reached = torch.cat([torch.ones(n, 1).to(right), right], dim=1)
    rest = torch.linalg.qr(reached, mode="complete").Q[:, reached.shape[1] :]
    blocks = torch.linalg.qr(softmax_blocks(pattern, column_space(T, centred=True))).Q
    by_x, by_y = jacobian(blocks, left, right)
    by_y = torch.einsum("icjp,js->icsp", by_y, rest)
    J = torch.cat([by_x.flatten(2), by_y.flatten(2)], dim=2).flatten(0, 1)
    return J.shape[1] - int(torch.linalg.matrix_rank(J))


@torch.no_grad()
def minimum_logit_rank(
    pattern: Float[Tensor, "*batch rows n"], *, threshold: float | None = None
) -> int | Tensor:
    """Compute the smallest rank of logits A_l with softmax(A_l) = A.

    Logits are log A + c 1^T for any column c (equation (9)). The span of their columns contains the
    differences of the columns of log A, and is spanned by them if c is minus the first column: the
    smallest rank is the dimension of the columns' affine span, n - 1 at most.

    Parameters
    ----------
    pattern : (..., rows, n)
        Attention, positive everywhere.
    threshold : float, optional
        Singular values up to this share of the largest count as 0. The default is the paper's,
        max(rows, n) eps with the eps of the pattern's dtype.

    Returns
    -------
    int or integer tensor of shape (...)
        Smallest rank; a tensor for a batch of patterns.

    Raises
    ------
    InvalidArgumentError
        If an entry isn't positive.

    Examples
    --------
    >>> q, k = torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([[0.5], [0.0], [-1.0]])
    >>> minimum_logit_rank(torch.softmax(q @ k.T, dim=-1))
    1
    """
    if not (pattern > 0).all():
        raise InvalidArgumentError(
            "Every entry of `pattern` must be positive: softmax of finite logits never yields "
            f"{float(pattern.min()):.3g}. Omit padding and the later tokens of a causal model; "
            "if weights underflow, compute the attention in float64."
        )
    if threshold is None:
        threshold = max(pattern.shape[-2:]) * torch.finfo(pattern.dtype).eps
    logits = pattern.double().log()
    ranks = torch.linalg.matrix_rank(logits - logits[..., :1], rtol=threshold)
    return ranks if pattern.ndim > 2 else int(ranks)


def require_one_head(q: Tensor, k: Tensor, T: Tensor) -> None:
    """Refuse queries, keys and values that aren't those of one head on one sentence."""
    if q.ndim != 2 or q.shape != k.shape or T.ndim != 2 or len(T) != len(q):
        raise InvalidArgumentError(
            "`q` and `k` must have one shape (n, d_head_qk) and `T` the shape (n, d), of one head "
            f"and sentence; got {tuple(q.shape)}, {tuple(k.shape)} and {tuple(T.shape)}."
        )


def attention(
    q: Float[Tensor, "n d_head_qk"], k: Float[Tensor, "n d_head_qk"], scale: float
) -> Float[Tensor, "n n"]:
    """Attention A = softmax(scale q k^T), equation (1)."""
    return torch.softmax(scale * q @ k.T, dim=-1)


def column_space(matrix: Float[Tensor, "n d"], *, centred: bool = False) -> Float[Tensor, "n rank"]:
    """Orthonormal basis, in float64, of the space that the columns span.

    Parameters
    ----------
    matrix : (n, d)
        Singular values up to max(n, d) eps ||matrix||_2 count as 0, with the eps of its dtype.
    centred : bool
        Subtract the mean of each column first. The result has rank[matrix, 1] - 1 columns, which
        with 1 are a basis of the column space of [matrix, 1].
    """
    x = matrix.double()
    largest = torch.linalg.matrix_norm(x, 2)
    U, s, _ = torch.linalg.svd(x - x.mean(dim=0) if centred else x, full_matrices=False)
    return U[:, s > max(x.shape) * torch.finfo(matrix.dtype).eps * largest]


def softmax_blocks(
    pattern: Float[Tensor, "n n"], basis: Float[Tensor, "n m"]
) -> Float[Tensor, "n n m"]:
    """Products S_i U for each row a_i of A, with its softmax Jacobian diag(a_i) - a_i^T a_i."""
    # row j is a_ij sum_l a_il (U_j - U_l): where a_ij is almost 1, U_j - a_i U would cancel
    differences = basis[:, None] - basis
    return pattern[:, :, None] * torch.einsum("il,jlc->ijc", pattern, differences)


def jacobian(
    blocks: Float[Tensor, "n n m"],
    left: Float[Tensor, "n r_left"],
    right: Float[Tensor, "n r_right"],
) -> tuple[Float[Tensor, "n m n r_right"], Float[Tensor, "n m n r_left"]]:
    """Derivatives of (x, y) -> (x right^T + left y^T)_i blocks_i, the outputs of rows i.

    Parameters
    ----------
    blocks : (n, n, m)
        One matrix for each row i.
    left : (n, r_left)
        Factor of y^T.
    right : (n, r_right)
        Factor of x.

    Returns
    -------
    by_x : (n, m, n, r_right)
        Derivatives of output (i, c) by x.
    by_y : (n, m, n, r_left)
        Derivatives of output (i, c) by y.
    """
    n, _, m = blocks.shape
    by_x = blocks.new_zeros(n, m, n, right.shape[1])
    rows = torch.arange(n)
    by_x[rows, :, rows] = torch.einsum("ijc,jp->icp", blocks, right)
    return by_x, torch.einsum("ijc,ip->icjp", blocks, left)
