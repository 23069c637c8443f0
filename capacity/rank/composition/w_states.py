"""The Kronecker product of three W states, in 16 terms with rational coefficients.

With an index for each subset of {x, y, z}, it is the product of the algebra R[x, y, z] / (x^2, y^2,
z^2): the symmetric tensor of the cubic form

    F = 3 a^2 e + 6 a (x yz + y xz + z xy) + 6 x y z

of the coordinates a of 1, x, y, z, yz, xz, xy, and e of xyz. Its rank is 16 (J. Zuiddam, A note on
the gap between rank and border rank, Linear Algebra Appl. 525, 2017). The terms here are cubes.

*Proof.* For signs s and t let X = x + s y + t z and Q = s t yz + t xz + s xy + e. Over all four
pairs of signs,

    sum s t X^3 = 24 x y z,      sum s t X Q = 4 (x yz + y xz + z xy),
    sum Q = 4 e,                 sum s t X = 0.

So F is a quarter of the sum of s t G, where G = X^3 + 6 a X Q + 3 s t a^2 Q - a^2 X / 4. Let
X' = X + s t a / 2 and Q' = Q - s t X / 4 - 2 a / 3. Multiplied out,

    G = X'^3 + 6 a X' Q' + 15 / 4 a^2 X'.

For the points p = 1, -1, 2, -2 let w = 2/3, -2/3, -1/48, 1/48. The sums of w p, w p^3 and w p^5 are
5/4, 1 and 0, and those of even powers are 0. So

    sum w (a + p X' + p^2 Q')^3 = X'^3 + 6 a X' Q' + 15 / 4 a^2 X' = G,

which is four cubes for each pair of signs.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np

from capacity.exact.types import Indices, Term, vector
from capacity.rank.method import Goal, Method, Problem
from capacity.rank.reductions.relabelling import relabelling
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.verifier.kinds.decomposition import Decomposition
from capacity.tensor.dense import from_dense
from capacity.tensor.operations import kronecker
from capacity.tensor.sparse import SparseTensor
from capacity.tensor.theory.states import w_state

# the points, and the odd function w of them
WEIGHTS = {
    sign * p: sign * w for p, w in ((1, Fraction(2, 3)), (2, Fraction(-1, 48))) for sign in (1, -1)
}
B = Fraction(-2, 3)
SHAPE, ENTRIES = (8, 8, 8), 27


def w_cube_terms(tensor: Indices) -> list[Term] | None:
    """Return 16 terms of a tensor that is a product of three W states; None if it is none.

    Parameters
    ----------
    tensor : ndarray of int64, shape (n_0, n_1, n_2)
        The tensor, whose indices may be in any order and have signs.
    """
    if tensor.shape != SHAPE or np.count_nonzero(tensor) != ENTRIES:
        return None
    found = relabelling(from_dense(tensor), _cube())
    if found is None:
        return None
    places = list(zip(found.indices, found.signs, strict=True))
    return [
        tuple(
            vector(order.tolist(), [x * int(sign) for x, sign in zip(one, signs, strict=True)])
            for one, (order, signs) in zip(term, places, strict=True)
        )
        for term in cubes()
    ]


def products_of_w_states(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Decompose the core if it is a product of three W states."""
    terms = w_cube_terms(problem.core.tensor.astype(np.int64))
    if terms is not None and len(terms) < goal.upper:
        yield (Decomposition(tuple(problem.core.lifted(terms))),)


@cache
def _cube() -> SparseTensor:
    W = w_state(3)
    return kronecker(W, W, W)


def cubes() -> list[tuple[list[Fraction], ...]]:
    """Return the coordinates of the terms' vectors, by subsets: x is 1, y is 2 and z is 4.

    Examples
    --------
    >>> a, b, c = np.array(cubes()).transpose(1, 0, 2)
    >>> bool((np.einsum("ri,rj,rk->ijk", a, b, c) == _cube().to_numpy()).all())
    True
    """
    found: list[tuple[list[Fraction], ...]] = []
    for s, t in product((1, -1), repeat=2):
        X = [Fraction(0), 1, s, 0, t, 0, 0, 0]
        Q = [0, 0, 0, s, 0, t, s * t, 1]
        second = [q - s * t * Fraction(x) / 4 for x, q in zip(X, Q, strict=True)]
        first = [Fraction(s * t, 2), *map(Fraction, X[1:])]
        second[0] += B
        for p, w in WEIGHTS.items():
            row = [p * x + p**2 * q for x, q in zip(first, second, strict=True)]
            row[0] += 1
            found.append((row, row, [s * t * w / 4 * x for x in row]))
    return found


W_STATES = Method("product of W states", products_of_w_states, sides=("upper",))
