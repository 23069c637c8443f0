"""Proof by example that attention isn't unique under P1-P4: other queries and keys, same output.

`find_witness` walks to attention that comes from queries and keys of a head's own size, and
`query_key_weights` finds the weights that make them. Where both succeed, the size of queries and
keys doesn't make attention identifiable, whatever the rank of constructed alternatives.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from capacity.errors import InvalidArgumentError
from capacity.limits import Seed, integer_seed
from capacity.transformer.identifiability.logit_rank import (
    attention,
    column_space,
    jacobian,
    p4_excess,
    require_one_head,
    softmax_blocks,
)

# of the residual A T - H in a basis of col(T), whose entries are below 1
CONVERGED = 1e-14
CORRECTIONS = 50
HALVINGS = 20
POWER_ITERATIONS = 4


@dataclass(frozen=True, eq=False)
class Witness:
    """Queries and keys that give other attention and the same output.

    Attributes
    ----------
    q, k : (n, d_head_qk) float64
    pattern : (n, n) float64
        Their attention, softmax(scale q k^T).
    relative_change : float
        ||A' - A|| / ||A|| in the Frobenius norm.
    residual : float
        Largest entry of |A' T - A T|, over the largest of |A T|.
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
    """Find other queries and keys of the same size whose attention puts out the same.

    Those with softmax(scale q k^T) T = H form a manifold through the given ones. Each step goes
    along the tangent that changes A most (power iterations in the Jacobian's kernel), and Newton
    steps of least norm lead back to the manifold.

    Parameters
    ----------
    q, k : (n, d_head_qk)
        Of one head and sentence, bidirectional, without padding.
    T : (n, d)
        V W_O, or any matrix with the same left null space. Its dtype says how exact it is.
    scale : float
        Of the logits.
    steps : int
    step : float
        Relative change of A that a step aims at. It is shorter where a logit would change by more
        than 1, or where Newton steps don't converge.
    seed : int or numpy.random.Generator
        Of the first direction.

    Returns
    -------
    Witness

    Raises
    ------
    InvalidArgumentError
        If `p4_excess` isn't positive, an argument is out of range, or no step converges.
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
            f"P4's excess must be positive for other attention to be expected; it is {excess} for "
            f"{n} tokens, d_head_qk = {d_head_qk} and rank[T, 1] = {1 + basis.shape[1]}. Longer "
            "sentences or larger queries and keys raise it."
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
    """Find weights that make given queries and keys of given inputs: x W_Q = q and x W_K = k.

    Parameters
    ----------
    x : (n, d_model)
        Inputs of the attention layer, in independent rows.
    q, k : (n, d_head_qk)
        Before any rotation of positions.

    Returns
    -------
    W_Q, W_K : (d_model, d_head_qk) float64
        Of least norm. They act on rows from the right; transpose W_K for `AttentionLayer`.

    Raises
    ------
    InvalidArgumentError
        If the rows of x are dependent, so that not every q and k can be made.
    """
    if x.ndim != 2 or q.shape != k.shape or q.shape[:-1] != x.shape[:1]:
        raise InvalidArgumentError(
            "`x` must have the shape (n, d_model), `q` and `k` one shape (n, d_head_qk); got "
            f"{tuple(x.shape)}, {tuple(q.shape)} and {tuple(k.shape)}."
        )
    rank = int(torch.linalg.matrix_rank(x))
    if rank < len(x):
        raise InvalidArgumentError(
            f"The inputs of {len(x)} tokens must be independent; their rank is {rank}. Take a "
            "shorter sentence, without repeated inputs."
        )
    inverse = torch.linalg.pinv(x.double())
    return inverse @ q.double(), inverse @ k.double()


@dataclass(frozen=True, eq=False)
class _Head:
    """Pairs (q, k), stacked, with softmax(scale q k^T) basis = target."""

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
            "Newton steps must converge, and did for no length of step: attention may be so sharp "
            "that outputs hardly depend on queries and keys. Try another seed or head."
        )

    def _change(self, pattern: Tensor, point: Tensor, tangent: Tensor) -> tuple[Tensor, Tensor]:
        (q, k), (dq, dk) = point, tangent
        logits = self.scale * (dq @ k.T + q @ dk.T)
        return logits, _softmax_derivative(pattern, logits)

    def _strongest(self, pattern: Tensor, point: Tensor, tangent: Tensor) -> Tensor:
        # J_A^T J_A; the softmax's derivative is symmetric
        _, change = self._change(pattern, point, tangent)
        logits = self.scale * _softmax_derivative(pattern, change)
        return torch.stack([logits @ point[1], logits.T @ point[0]])

    def _correct(self, point: Tensor, Q: Tensor, R: Tensor) -> Tensor | None:
        for _ in range(CORRECTIONS):
            pattern = attention(point[0], point[1], self.scale)
            residual = pattern @ self.basis - self.target
            if residual.abs().max() <= CONVERGED:
                return point
            # one Jacobian serves all: linear convergence, at the price of a product each
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
