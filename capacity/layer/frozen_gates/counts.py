"""Upper bounds of the assignments of objects that a layer with given gates can hold. No torch.

Give N pairs one of V objects each: there are V^N assignments. Whatever other tokens compete, an
assignment is held only if each pair's object has the largest logit of the V. With gates and
embeddings fixed, the differences of two logits at a pair, M = N V (V - 1) / 2 of them, are
polynomials in the weights; a common vector is taken off the columns of W_U, so that V - 1 are left.
Different assignments that are held have different signs of the differences. So there are no more of
them than of sign vectors, which are counted with d = d_model, m = V - 1 and H heads

* in the numbers z = F y, F of `gate_rank`: M hyperplanes in P = min(N, (H + 1) d) m dimensions,
  hence at most 2 sum_{k < P} binomial(M - 1, k) (Cover 1965);
* in W_V^h and W_O^h W_U, matrices of rank r = min(d_head_vo, d, m) at most: degree 2 in
  P = H r (d + m - r) + d m parameters;
* in W_V^h W_O^h, of rank r = d_head_vo at most, and W_U: degree 3 in P = H r (2 d - r) + d m;
* in any matrices for W_V^h W_O^h, and W_U: degree 2 in P = H d^2 + d m;

and by Warren's theorem M >= P polynomials of degree D in P variables have at most (4 e D M / P)^P
sign vectors. A matrix of rank at most r is G B with B some r of its d rows, and G the identity at
them: binomial(d, r) charts a head cover all of them, and their counts add up.
"""

from __future__ import annotations

import math

from scipy.special import betainc, gammaln

from capacity.checks import require_integer, shown
from capacity.errors import InvalidArgumentError
from capacity.layer.model.config import LayerConfig

MOST_OBJECTS = 2**31 - 1
MOST_PAIRS = 2**62
# against rounding, in bits: what is allowed stays allowed
ROUNDING = 1e-6


def log2_assignments_held(config: LayerConfig, n_pairs: int, n_objects: int) -> float:
    """Base-2 logarithm of an upper bound of the assignments of objects that can be held.

    Of the ``n_objects ** n_pairs`` ways to give each of some pairs an object, no layer of this size
    with given W_E, W_Q and W_K holds more, by argmax and hence at any tau, however W_V, W_O and W_U
    are trained. So random objects are held with at most this count's share of all, and with k draws
    of the gates at most k times that.

    For two objects, and pairs that are independent as far as their number allows, it is exact.

    Parameters
    ----------
    config : LayerConfig
        Sizes of a plain layer.
    n_pairs : int
        Number N of pairs (subject, predicate).
    n_objects : int
        Number V of objects that a pair may have, at least 2.

    Returns
    -------
    float
        The least of N log2(V) and four counts in the weights, in bits.

    Raises
    ------
    InvalidArgumentError
        For a layer with norm, bias or positions, or numbers out of their range.

    Examples
    --------
    Of 2^16 assignments of two objects just half, 2^15:

    >>> config = LayerConfig(d_model=4, n_heads=1, d_head_qk=1, d_head_vo=2)
    >>> round(log2_assignments_held(config, 16, 2), 6)
    15.0
    """
    if not config.is_plain:
        raise InvalidArgumentError(
            f"Counts are of layers without norm, bias and positions; got {config.name}."
        )
    n = require_integer("n_pairs", n_pairs, least=0, most=MOST_PAIRS)
    n_objects = require_integer("n_objects", n_objects, least=2, most=MOST_OBJECTS)
    d, heads, m = config.d_model, config.n_heads, n_objects - 1
    n_signs = n * n_objects * m // 2
    logits, stream = min(config.d_head_vo, m), config.d_head_vo
    return min(
        n * math.log2(n_objects),
        _cover(n_signs, min(n, (heads + 1) * d) * m),
        heads * _log2_binomial(d, logits)
        + _warren(n_signs, heads * logits * (d + m - logits) + d * m, 2),
        heads * _log2_binomial(d, stream)
        + _warren(n_signs, heads * stream * (2 * d - stream) + d * m, 3),
        _warren(n_signs, heads * d * d + d * m, 2),
    )


def frozen_gates_most(config: LayerConfig, n_objects: int, share: float = 0.5) -> int:
    """Largest number of pairs of which a share of all assignments of objects may still be held.

    An upper end: of more pairs, fewer than this share of databases with random objects can be held
    by training W_V, W_O and W_U, if W_E, W_Q and W_K don't depend on the objects. It says nothing
    of layers whose W_E is trained, and little of databases whose objects are many: a layer
    has d_model weights in W_U for each, so that the bound exceeds d_model (n_objects - 1).

    Parameters
    ----------
    config : LayerConfig
        Sizes of a plain layer.
    n_objects : int
        Number V of objects that a pair may have, at least 2.
    share : float
        Share of the assignments, above 0 and at most 1.

    Returns
    -------
    int
        Number of pairs.

    Raises
    ------
    InvalidArgumentError
        For a layer with norm, bias or positions, or numbers out of their range.

    Examples
    --------
    For two objects 2 (n_heads + 1) d_model:

    >>> config = LayerConfig(d_model=4, n_heads=2, d_head_qk=1, d_head_vo=1)
    >>> frozen_gates_most(config, 2), frozen_gates_most(config, 16)
    (24, 255)
    """
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise InvalidArgumentError(f"`share` must be above 0 and at most 1; got {shown(share)}.")

    def may_hold(n: int) -> bool:
        lost = n * math.log2(n_objects) - log2_assignments_held(config, n, n_objects)
        return lost <= ROUNDING - math.log2(share)

    # each count is concave in N, in logarithms, and 0 bits are lost at first
    most = 1
    while may_hold(most):
        most *= 2
    least = most // 2
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if may_hold(middle) else (least, middle)
    return least


def _cover(n_planes: int, dimension: int) -> float:
    """log2 of Cover's number of regions of hyperplanes through 0 in general position."""
    n, most = n_planes - 1, dimension - 1
    if most >= n:
        return float(n_planes)
    # the share of all sign vectors is a tail of the binomial distribution
    tail = float(betainc(n - most, most + 1, 0.5))
    if tail > 1e-200:
        return n_planes + math.log2(tail)
    # the tail against its largest term: a geometric series, with most < n / 2 here
    return 1 + _log2_binomial(n, most) + math.log2((n - most + 1) / (n - 2 * most + 1))


def _warren(n_polynomials: int, n_variables: int, degree: int) -> float:
    """log2 of Warren's bound of the number of sign vectors."""
    if n_polynomials < n_variables:
        return float(n_polynomials)
    return n_variables * math.log2(4 * math.e * degree * n_polynomials / n_variables)


def _log2_binomial(n: int, k: int) -> float:
    """log2 of a binomial coefficient."""
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)) / math.log(2)
