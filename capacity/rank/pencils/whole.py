"""Explicit terms of a `Pencil` argument: of two slices, and of their combinations."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from capacity.exact.types import AlgebraicTerm, AlgebraicVector, Indices
from capacity.rank.coefficients import Explicit
from capacity.rank.cp.explicit import ExactTerms, as_argument
from capacity.rank.pencils.terms import pencil_terms
from capacity.rank.verifier.argument import Argument
from capacity.rank.verifier.kinds.pencil import Pencil
from capacity.tensor.sparse import SparseTensor


def in_terms(arguments: Iterable[Argument], tensor: SparseTensor) -> tuple[Argument, ...]:
    """Return the arguments of an upper bound, with decompositions in place of pencils.

    Pencils whose terms are out of reach stay as they are.
    """
    return tuple((isinstance(of, Pencil) and explicit_pencil(of, tensor)) or of for of in arguments)


def explicit_pencil(argument: Pencil, tensor: SparseTensor) -> Explicit | None:
    """Return a decomposition of the entries that a pencil proves an upper bound of.

    Parameters
    ----------
    argument : Pencil
        A proved upper bound.
    tensor : SparseTensor
        The tensor that it is about, of order three.

    Returns
    -------
    Decomposition, AlgebraicDecomposition or None
        Of as many terms as the bound; None as for `pencil_terms`.

    Examples
    --------
    >>> from capacity.tensor import complex_numbers
    >>> argument = Pencil(0, np.array([0, 1]), 3)
    >>> explicit_pencil(argument, complex_numbers()).value
    3
    """
    mode = argument.mode
    a, b = (m for m in range(3) if m != mode)
    mine = np.isin(tensor.indices[:, mode], argument.slices)
    rows, columns = (np.unique(tensor.indices[mine, m]) for m in (a, b))
    # the components of both slices have these rows and columns
    inside = np.isin(tensor.indices[:, a], rows) & np.isin(tensor.indices[:, b], columns)
    at, values = tensor.indices[inside], tensor.values[inside]
    numbers, index = np.unique(at[:, mode], return_inverse=True)
    dense = np.zeros((len(numbers), len(rows), len(columns)), np.int64)
    dense[index, np.searchsorted(rows, at[:, a]), np.searchsorted(columns, at[:, b])] = values
    chosen = np.searchsorted(numbers, argument.slices)
    found = pencil_terms(dense[chosen], argument.value)
    if found is None:
        return None
    of_two = _combinations(dense.reshape(len(numbers), -1), chosen)
    terms: list[AlgebraicTerm] = []
    for pair, column, row in found.terms:
        vectors = [_moved(column, rows), _moved(row, columns)]
        vectors.insert(mode, _moved(_combined(pair, of_two), numbers))
        terms.append(tuple(vectors))
    return as_argument(ExactTerms(found.field, terms))


def _combinations(slices: Indices, chosen: Indices) -> list[list[Fraction]]:
    """For each slice the coefficients of the two chosen ones whose combination it is."""
    (x, y) = slices[chosen].tolist()
    p = next(k for k, z in enumerate(x) if z)
    q = next(k for k in range(len(y)) if x[p] * y[k] != x[k] * y[p])
    d = x[p] * y[q] - x[q] * y[p]
    return [
        [Fraction(z[p] * y[q] - z[q] * y[p], d), Fraction(x[p] * z[q] - x[q] * z[p], d)]
        for z in slices.tolist()
    ]


def _combined(pair: AlgebraicVector, of_two: list[list[Fraction]]) -> AlgebraicVector:
    """A vector of two slices as one of all, whose slices are combinations of them."""
    length = max(map(len, pair[1]))
    full = {i: (*x, *[Fraction(0)] * (length - len(x))) for i, x in zip(*pair, strict=True)}
    every = [
        tuple(sum((s[i] * x[k] for i, x in full.items()), Fraction(0)) for k in range(length))
        for s in of_two
    ]
    kept = [(i, x) for i, x in enumerate(every) if any(x)]
    return tuple(i for i, _ in kept), tuple(x for _, x in kept)


def _moved(vector: AlgebraicVector, indices: Indices) -> AlgebraicVector:
    return tuple(indices[list(vector[0])].tolist()), vector[1]
