"""Checks of exact decompositions: powers of Strassen's, sparse and in other bases, with fractions.

    python benchmarks/verify_schemes.py

CPU seconds of `verify_decomposition` on one thread, beside the sum by its definition: an outer
product of fractions for each term, in numpy's arrays of objects, where that is a matter of seconds.
The bases are unimodular of seed 0, so that all coefficients stay integers; fractions are terms
scaled by drawn ones, whose product is 1.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from record import medians, write

from capacity.rank import verify_decomposition
from capacity.tensor import SparseTensor, matrix_multiplication

REPEATS = 3
# sums of more terms by definition take minutes
PEER_UP_TO = 49
SEVEN = (
    [[1, 0, 1, 0, 1, -1, 0], [0, 0, 0, 0, 1, 0, 1], [0, 1, 0, 0, 0, 1, 0], [1, 1, 0, 1, 0, 0, -1]],
    [[1, 1, 0, -1, 0, 1, 0], [0, 0, 1, 0, 0, 1, 0], [0, 0, 0, 1, 0, 0, 1], [1, 0, -1, 0, 1, 0, 1]],
    [[1, 0, 0, 1, -1, 0, 1], [0, 0, 1, 0, 1, 0, 0], [0, 1, 0, 1, 0, 0, 0], [1, -1, 1, 0, 0, 1, 0]],
)
Matrices = list[NDArray[Any]]


def power(k: int) -> Matrices:
    """Strassen's decomposition to the k-th power: 7^k terms for matrices of 2^k rows."""
    whole = [np.array(of) for of in SEVEN]
    for n in (2**i for i in range(1, k)):
        whole = [
            np.einsum("ijr,kls->ikjlrs", a.reshape(n, n, -1), np.reshape(b, (2, 2, -1))).reshape(
                4 * n * n, -1
            )
            for a, b in zip(whole, SEVEN, strict=True)
        ]
    return whole


def unimodular(n: int, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """An integer matrix of determinant 1, by 2 n steps, and its inverse."""
    matrix, inverse = np.eye(n, dtype=int), np.eye(n, dtype=int)
    for _ in range(2 * n):
        i, j = rng.choice(n, 2, replace=False)
        sign = int(rng.choice([-1, 1]))
        matrix[i] += sign * matrix[j]
        inverse[:, j] -= sign * inverse[:, i]
    return matrix, inverse


def in_other_bases(factors: Matrices, n: int) -> Matrices:
    """The decomposition of (P A Q^-1) (Q B R^-1) = P A B R^-1."""
    rng = np.random.default_rng(0)
    (P, P_), (Q, Q_), (R, R_) = (unimodular(n, rng) for _ in range(3))
    sides = ((P, Q_), (Q, R_), (P_.T, R.T))
    return [
        np.einsum("ijr,ia,bj->abr", of.reshape(n, n, -1), left, right).reshape(n * n, -1)
        for of, (left, right) in zip(factors, sides, strict=True)
    ]


def with_fractions(factors: Matrices) -> Matrices:
    """Terms scaled by fractions in two modes, and by what makes up for it in the third."""
    rng = np.random.default_rng(1)
    n = factors[0].shape[1]
    tops, bottoms = rng.choice([1, 2, 3, 4], (2, n)).tolist(), rng.choice([1, 2, 3, 8], (2, n))
    scales = [
        [Fraction(a, int(b)) for a, b in zip(*of, strict=True)]
        for of in zip(tops, bottoms, strict=True)
    ]
    scales.append([1 / (a * b) for a, b in zip(*scales, strict=True)])
    return [
        of.astype(object) * np.array(scale, dtype=object)
        for of, scale in zip(factors, scales, strict=True)
    ]


def by_definition(factors: Matrices, tensor: SparseTensor) -> None:
    """Add up all terms, entry by entry."""
    total = np.zeros(tensor.shape, dtype=object)
    for columns in zip(*(of.T for of in factors), strict=True):
        a, b, c = (column.astype(object) for column in columns)
        total = total + a[:, None, None] * b[:, None] * c
    assert (total == tensor.to_numpy()).all()


def main() -> None:
    rows = []
    for k in (2, 3, 4):
        n = 2**k
        tensor, sparse = matrix_multiplication(n, n, n), power(k)
        dense = in_other_bases(sparse, n)
        cases = {
            "sparse": sparse,
            "sparse, fractions": with_fractions(sparse),
            "dense": dense,
            "dense, fractions": with_fractions(dense),
        }
        for name, factors in cases.items():
            assert verify_decomposition(tensor, factors).proved
            runs: dict[str, Callable[[], object]] = {
                "ours": lambda f=factors, t=tensor: verify_decomposition(t, f)
            }
            if 7**k <= PEER_UP_TO:
                runs["by definition"] = lambda f=factors, t=tensor: by_definition(f, t)
            seconds = medians(runs, repeats=REPEATS)
            density = float(np.mean([(of != 0).mean() for of in factors]))
            row = {"matrices": f"{n} x {n}", "case": name, "terms": 7**k,
                   "density": round(density, 3), "seconds": round(seconds["ours"], 3)}  # fmt: skip
            if "by definition" in seconds:
                row["definition_over_ours"] = round(seconds["by definition"] / seconds["ours"], 1)
            rows.append(row)
    write(
        "verify_schemes",
        what="CPU seconds of exact checks of decompositions",
        peer="the sum by definition, in fractions, of 49 terms",
        rows=rows,
        packages=["numpy", "python-flint"],
    )


if __name__ == "__main__":
    main()
