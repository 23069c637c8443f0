"""Lower bound by a Koszul flattening: its rank divided by its rank for a simple tensor."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import ClassVar

import flint
import numpy as np

from capacity.exact.types import Touched
from capacity.rank.verifier.argument import Forms, FromBelow, View
from capacity.rank.verifier.budget import DENSE_BYTES, require_at_most, steps_of_rank
from capacity.rank.verifier.entries import Entries, require
from capacity.rank.verifier.kind import Kind
from capacity.rank.verifier.view import UNOBSERVED, require_prime, view_tensor

# largest number of slices of a flattening
MOST_SLICES = 13


@dataclass(frozen=True, eq=False, repr=False)
class Koszul(FromBelow):
    """The rank of a Koszul flattening, with the lower bound that it proves.

    Attributes
    ----------
    view : View
        Sub-tensor; the number of its slices in the mode is called a.
    mode : int
        Mode of the slices.
    p : int
        Exterior power of the flattening, from 0 to a - 1.
    prime : int
        Prime modulo which the rank is computed.
    value : int
        Rank of the flattening divided by C(a - 1, p), rounded up.
    """

    kind: ClassVar[str] = "koszul"
    forms: ClassVar[Forms] = {
        "view": "view",
        "mode": "integer",
        "p": "integer",
        "prime": "integer",
        "value": "integer",
    }
    view: View
    mode: int
    p: int
    prime: int
    value: int


def check_koszul(argument: Koszul, entries: Entries) -> Touched:
    """Check the rank of a Koszul flattening M of X; rank(X) >= rank(M) / C(a - 1, p).

    M = sum_i (e_i ^ .) (x) X_i, for the a slices X_i of the view, maps wedge^p (x) B to
    wedge^(p+1) (x) C. It is linear in X. For a simple X = x (x) y (x) z it is (x ^ .) (x) y (x) z,
    which has the rank of x ^ . on wedge^p. This is C(a - 1, p) for a nonzero x: in a basis that
    begins with x, the p-subsets of the other a - 1 vectors survive. The rank modulo a prime is no
    larger than the rank.

    All this holds over every field that contains the rational numbers. A minor of M that isn't 0
    isn't 0 near X, so that the bound is one of the border rank.
    """
    entries.require_order_3()
    entries.require_mode(argument.mode)
    tensor, known = view_tensor(argument.view, entries)
    require(known.all(), UNOBSERVED)
    X = np.moveaxis(tensor, argument.mode, 0)
    a, p = len(X), argument.p
    require(0 <= p < a, f"there is no flattening of {a} slices with p = {p}")
    require_at_most("slices of a flattening", a, MOST_SLICES)
    rows, columns = math.comb(a, p) * X.shape[1], math.comb(a, p + 1) * X.shape[2]
    require_prime(argument.prime)
    entries.budget.spend(steps_of_rank(rows, columns), DENSE_BYTES * rows * columns)
    upper = {subset: u for u, subset in enumerate(itertools.combinations(range(a), p + 1))}
    M = np.zeros((math.comb(a, p), X.shape[1], len(upper), X.shape[2]), np.int64)
    # e_i ^ e_S = (-1)^(number of elements of S below i) e_(S + i)
    for s, subset in enumerate(itertools.combinations(range(a), p)):
        for i in set(range(a)) - set(subset):
            sign = (-1) ** sum(x < i for x in subset)
            M[s, :, upper[tuple(sorted((*subset, i)))], :] = sign * X[i]
    flat = (M % argument.prime).ravel().tolist()
    rank = flint.nmod_mat(rows, columns, flat, argument.prime).rank()
    bound = -(-rank // math.comb(a - 1, p))
    require(argument.value == bound, f"the flattening has rank {rank}, which proves {bound}")
    return argument.view.indices


KIND = Kind(Koszul, lower=check_koszul, below_complex=True, border=True)
