"""Other attention with the same output: under P1-P3, and by other queries and keys under P1-P4.

This is the construction of Brunner et al. (2019), with which Bhardwaj et al. (2021, Figure 5) argue
for P4: its results need logits of rank n - 1 (`minimum_logit_rank`), while those of a head have
rank d_head_qk at most. That doesn't prove that no other attention satisfies P4:
`find_witness` finds some. P1 to P4 are in
`capacity.transformer.identifiability.logit_rank`.

`find_witness` moves to other attention from queries and keys of the same size, and
`query_key_weights` finds weights that produce them. Where both succeed, the size of queries and
keys doesn't make attention identifiable, whatever the rank of constructed alternatives.

Without softmax other keys alone are enough, `alternative_keys` (Proposition 3.3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from capacity.checks import Seed, integer_seed
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.transformer.identifiability.logit_rank import (
    attention,
    column_space,
    jacobian,
    p4_excess,
    require_one_head,
    softmax_blocks,
)


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
    a one-hot row, gets A~ = 0. In a causal model row i depends on tokens 0 ... i alone: pass these,
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


@torch.no_grad()
def alternative_keys(
    k: Float[Tensor, "n d_head_qk"], T: Float[Tensor, "n d"], *, seed: Seed = 0, size: float = 1.0
) -> Float[Tensor, "n d_head_qk"]:
    """Draw keys whose logits differ, but not the product of the logits with T: no softmax.

    Proposition 3.3 of the paper: with A = Q K^T in place of attention there is an A~ that isn't
    zero, with (A + A~) T = A T and rank(A + A~) <= d_head_qk. The proof takes d_head_qk rows of A~
    from LN(T), and the others as the combinations that the rows of A are. Rows of A are the
    combinations Q of the d_head_qk rows of K^T, so that here A~ = Q K~^T with the rows of K~^T in
    LN(T), for any Q at once: the paper's rows are Q K~^T for rows of Q that are a basis.

    Parameters
    ----------
    k : (n, d_head_qk)
        Keys of one head and sentence.
    T : (n, d)
        V W_O, or any matrix with the same left null space. Its dtype sets the rank threshold.
    seed : int or numpy.random.Generator
        Seed of the coefficients.
    size : float
        ||K~|| / ||K|| in the Frobenius norm; positive.

    Returns
    -------
    (n, d_head_qk) float64
        K + K~.

    Raises
    ------
    InvalidArgumentError
        If LN(T) is {0}, or an argument is out of range.

    References
    ----------
    Bhardwaj et al. 2021, section 3.2.1, Proposition 3.3.

    Examples
    --------
    >>> generator = torch.Generator().manual_seed(0)
    >>> q, k, T = (torch.randn(6, 2, generator=generator) for _ in range(3))
    >>> change = q.double() @ (alternative_keys(k, T) - k).T
    >>> bool(change.norm() > 1), bool((change @ T.double()).abs().max() < 1e-6)
    (True, True)
    """
    if k.ndim != 2 or T.ndim != 2 or len(k) != len(T):
        raise InvalidArgumentError(
            "`k` must have the shape (n, d_head_qk) and `T` the shape (n, d), of one head and "
            f"sentence; got {tuple(k.shape)} and {tuple(T.shape)}."
        )
    if not 0 < size < math.inf:
        raise InvalidArgumentError(f"`size` must be positive and finite; got {size}.")
    span = column_space(T)
    null = torch.linalg.qr(span, mode="complete").Q[:, span.shape[1] :]
    if not null.shape[1]:
        raise InvalidArgumentError(
            f"LN(T) must have other elements than 0; T has rank {len(T)}, that of its {len(T)} "
            "rows, so that A T determines A. Take a longer sentence."
        )
    generator = torch.Generator().manual_seed(integer_seed(seed))
    drawn = torch.randn(null.shape[1], k.shape[1], generator=generator, dtype=null.dtype)
    change = null @ drawn.to(null)
    return k.double() + size * k.double().norm() / change.norm() * change


# largest entry of the residual A T - H, in a basis of col(T) with entries below 1
CONVERGED = 1e-14
# Newton steps of one correction, and halvings of a step's length
CORRECTIONS = 50
HALVINGS = 20
POWER_ITERATIONS = 4


@briefly_shown
@dataclass(frozen=True, eq=False)
class Witness:
    """Queries and keys with other attention A' and the same output.

    Attributes
    ----------
    q, k : (n, d_head_qk) float64
        Queries and keys.
    pattern : (n, n) float64
        Their attention A' = softmax(scale q k^T).
    relative_change : float
        ||A' - A|| / ||A|| in the Frobenius norm, with A the given attention.
    residual : float
        Largest entry of |A' T - A T|, divided by the largest of |A T|.
    """

    q: Float[Tensor, "n d_head_qk"]
    k: Float[Tensor, "n d_head_qk"]
    pattern: Float[Tensor, "n n"]
    relative_change: float
    residual: float


@torch.no_grad()
def find_witness(
    q: Float[Tensor, "n d_head_qk"],
    k: Float[Tensor, "n d_head_qk"],
    T: Float[Tensor, "n d"],
    *,
    scale: float,
    steps: int = 6,
    step: float = 0.1,
    seed: Seed = 0,
) -> Witness:
    """Find other queries and keys of the same size, with other attention and the same output.

    Those with softmax(scale q k^T) T = H form a manifold through the given ones. Each step goes
    along the tangent that changes A most (power iterations in the Jacobian's kernel), and Newton
    steps of least norm lead back to the manifold.

    Parameters
    ----------
    q, k : (n, d_head_qk)
        Queries and keys of one head and sentence, bidirectional, without padding.
    T : (n, d)
        V W_O, or any matrix with the same left null space. Its dtype sets the rank threshold.
    scale : float
        Factor of the logits.
    steps : int
        Number of steps.
    step : float
        Relative change of A that each step aims at. A step is shorter where a logit would change
        by more than 1, or where Newton steps don't converge.
    seed : int or numpy.random.Generator
        Seed of the first direction.

    Returns
    -------
    Witness
        The queries and keys after the last step, with their attention.

    Raises
    ------
    InvalidArgumentError
        If the shapes don't fit, `p4_excess` isn't positive, an argument is out of range, or Newton
        steps converge for no length of step.

    Examples
    --------
    >>> generator = torch.Generator().manual_seed(0)
    >>> q, k, T = (torch.randn(8, 2, generator=generator) for _ in range(3))
    >>> found = find_witness(q, k, T, scale=1.0, steps=2)
    >>> found.relative_change > 0.05, found.residual < 1e-12
    (True, True)
    """
    require_one_head(q, k, T)
    if not (steps >= 1 and step > 0):
        raise InvalidArgumentError(
            f"`steps` must be at least 1 and `step` positive; got {steps} and {step}."
        )
    basis = column_space(T, centred=True)
    n, d_head_qk = q.shape
    excess = p4_excess(n, d_head_qk, 1 + basis.shape[1])
    if excess <= 0:
        raise InvalidArgumentError(
            f"`p4_excess` must be positive for other attention to be expected; it is {excess} for "
            f"{n} tokens, d_head_qk = {d_head_qk} and rank[T, 1] = {1 + basis.shape[1]}. Take a "
            "longer sentence, or larger queries and keys."
        )
    head = _Head(scale, basis, attention(q.double(), k.double(), scale) @ basis)
    point = torch.stack([q.double(), k.double()])
    generator = torch.Generator().manual_seed(integer_seed(seed))
    tangent = torch.randn(point.shape, generator=generator, dtype=point.dtype).to(point)
    for _ in range(steps):
        point, tangent = head.move(point, tangent, step)
    before = attention(q.double(), k.double(), scale)
    after = attention(point[0], point[1], scale)
    H = before @ T.double()
    return Witness(
        q=point[0],
        k=point[1],
        pattern=after,
        relative_change=float((after - before).norm() / before.norm()),
        residual=float((after @ T.double() - H).abs().max() / H.abs().max()),
    )


@torch.no_grad()
def query_key_weights(
    x: Float[Tensor, "n d_model"],
    q: Float[Tensor, "n d_head_qk"],
    k: Float[Tensor, "n d_head_qk"],
) -> tuple[Float[Tensor, "d_model d_head_qk"], Float[Tensor, "d_model d_head_qk"]]:
    """Find weights that map given inputs to given queries and keys: x W_Q = q and x W_K = k.

    Parameters
    ----------
    x : (n, d_model)
        Inputs of the attention layer; rows must be linearly independent.
    q, k : (n, d_head_qk)
        Queries and keys, before any rotation of positions.

    Returns
    -------
    W_Q, W_K : (d_model, d_head_qk) float64
        Weights of least norm. They act on rows from the right; transpose W_K for `AttentionLayer`.

    Raises
    ------
    InvalidArgumentError
        If the shapes don't fit, or the rows of x are dependent, so that not every q and k can be
        reached.

    Examples
    --------
    >>> generator = torch.Generator().manual_seed(0)
    >>> x = torch.randn(3, 4, generator=generator)
    >>> q, k = torch.randn(2, 3, 2, generator=generator)
    >>> W_Q, W_K = query_key_weights(x, q, k)
    >>> W_Q.shape, torch.allclose(x.double() @ W_Q, q.double())
    (torch.Size([4, 2]), True)
    """
    if x.ndim != 2 or q.shape != k.shape or q.shape[:-1] != x.shape[:1]:
        raise InvalidArgumentError(
            "`x` must have the shape (n, d_model), `q` and `k` one shape (n, d_head_qk); got "
            f"{tuple(x.shape)}, {tuple(q.shape)} and {tuple(k.shape)}."
        )
    rank = int(torch.linalg.matrix_rank(x))
    if rank < len(x):
        raise InvalidArgumentError(
            f"The inputs of {len(x)} tokens must be linearly independent; their rank is {rank}. "
            "Take a shorter sentence, without repeated inputs."
        )
    inverse = torch.linalg.pinv(x.double())
    return inverse @ q.double(), inverse @ k.double()


@dataclass(frozen=True, eq=False)
class _Head:
    """Manifold of the stacked pairs (q, k) with softmax(scale q k^T) basis = target."""

    scale: float
    basis: Float[Tensor, "n m"]
    target: Float[Tensor, "n m"]

    def move(self, point: Tensor, tangent: Tensor, step: float) -> tuple[Tensor, Tensor]:
        q, k = point
        pattern = attention(q, k, self.scale)
        by_q, by_k = jacobian(softmax_blocks(pattern, self.basis), q, k)
        # (inputs q and k, outputs); 2 n d_head_qk >= n m since the excess is positive
        J = self.scale * torch.stack([by_q, by_k]).permute(0, 3, 4, 1, 2).flatten(3).flatten(0, 2)
        Q, R = torch.linalg.qr(J)
        for _ in range(POWER_ITERATIONS):
            tangent = self._strongest(pattern, point, _kernel(Q, tangent))
        tangent = _kernel(Q, tangent)
        logits, change = self._change(pattern, point, tangent)
        length = float(torch.minimum(step * pattern.norm() / change.norm(), 1 / logits.abs().max()))
        for _ in range(HALVINGS):
            found = self._correct(point + length * tangent, Q, R)
            if found is not None:
                return found, tangent
            length /= 2
        raise InvalidArgumentError(
            "Newton steps must converge, and did so for no length of step: attention may be so "
            "sharp that outputs hardly depend on queries and keys. Try another seed or head."
        )

    def _change(self, pattern: Tensor, point: Tensor, tangent: Tensor) -> tuple[Tensor, Tensor]:
        (q, k), (dq, dk) = point, tangent
        logits = self.scale * (dq @ k.T + q @ dk.T)
        return logits, _softmax_derivative(pattern, logits)

    def _strongest(self, pattern: Tensor, point: Tensor, tangent: Tensor) -> Tensor:
        # a power iteration with J_A^T J_A; the derivative of softmax is symmetric
        _, change = self._change(pattern, point, tangent)
        logits = self.scale * _softmax_derivative(pattern, change)
        return torch.stack([logits @ point[1], logits.T @ point[0]])

    def _correct(self, point: Tensor, Q: Tensor, R: Tensor) -> Tensor | None:
        for _ in range(CORRECTIONS):
            pattern = attention(point[0], point[1], self.scale)
            residual = pattern @ self.basis - self.target
            if residual.abs().max() <= CONVERGED:
                return point
            # one Jacobian for all steps: convergence is linear, and a step costs one product
            shift = torch.linalg.solve_triangular(R.T, residual.reshape(-1, 1), upper=False)
            point = point - (Q @ shift).view_as(point)
        return None


def _softmax_derivative(pattern: Tensor, change: Tensor) -> Tensor:
    weighted = pattern * change
    return weighted - pattern * weighted.sum(dim=1, keepdim=True)


def _kernel(Q: Tensor, tangent: Tensor) -> Tensor:
    z = tangent.reshape(-1, 1)
    z = z - Q @ (Q.T @ z)
    return (z / z.norm()).view_as(tangent)
