"""The rank of a Koszul flattening over that of a simple tensor, from below."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import ClassVar

import flint
import numpy as np

from capacity.rank.types import Touched
from capacity.rank.verifier.argument import Forms, FromBelow, View
from capacity.rank.verifier.budget import DENSE_BYTES, require_at_most, steps_of_rank
from capacity.rank.verifier.facts import Facts, require
from capacity.rank.verifier.kind import Kind
from capacity.rank.verifier.view import UNOBSERVED, require_prime, view_tensor

# slices of a flattening
MOST_SLICES = 13


@dataclass(frozen=True, eq=False, repr=False)
class Koszul(FromBelow):
    """The rank of a Koszul flattening.

    Attributes
    ----------
    view : View
        Its tensor has a slices in the mode.
    mode, p : int
    prime : int
        The rank is taken modulo this prime.
    value : int
        The rank of the flattening over C(a - 1, p), rounded up.
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


def check_koszul(argument: Koszul, facts: Facts) -> Touched:
    """rank(X) >= rank(M) / C(a - 1, p) for the Koszul flattening M = sum_i (e_i ^ .) (x) X_i.

    X_i are the a slices of the view; M maps wedge^p (x) B to wedge^(p+1) (x) C. It is linear in X,
    and for a simple X = x (x) y (x) z it is (x ^ .) (x) y (x) z, of the rank of x ^ . on wedge^p,
    which is C(a - 1, p) for a nonzero x: in a basis that begins with x, what survives are the
    p-subsets of the other a - 1 vectors. The rank modulo a prime is no larger than the rank.
    """
    require(argument.mode in (0, 1, 2), "there is no such mode")
    tensor, known = view_tensor(argument.view, facts)
    require(known.all(), UNOBSERVED)
    X = np.moveaxis(tensor, argument.mode, 0)
    a, p = len(X), argument.p
    require(0 <= p < a, f"there is no flattening of {a} slices with p = {p}")
    require_at_most("slices of a flattening", a, MOST_SLICES)
    rows, columns = math.comb(a, p) * X.shape[1], math.comb(a, p + 1) * X.shape[2]
    require_prime(argument.prime)
    facts.budget.spend(steps_of_rank(rows, columns), DENSE_BYTES * rows * columns)
    upper = {subset: u for u, subset in enumerate(itertools.combinations(range(a), p + 1))}
    M = np.zeros((math.comb(a, p), X.shape[1], len(upper), X.shape[2]), np.int64)
    # e_i ^ e_S = (-1)^(number of elements of S below i) e_(S + i)
    for s, subset in enumerate(itertools.combinations(range(a), p)):
        for i in set(range(a)) - set(subset):
            sign = (-1) ** sum(x < i for x in subset)
            M[s, :, upper[tuple(sorted((*subset, i)))], :] = sign * X[i]
    entries = (M % argument.prime).ravel().tolist()
    rank = flint.nmod_mat(rows, columns, entries, argument.prime).rank()
    bound = -(-rank // math.comb(a - 1, p))
    require(argument.value == bound, f"the flattening has rank {rank}, which gives {bound}")
    return argument.view.indices


KIND = Kind(Koszul, lower=check_koszul)
