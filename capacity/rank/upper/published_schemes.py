"""Published decompositions of products of matrices, for tensors that are these in another order.

Files in ``capacity/rank/schemes/published`` have the terms, and SOURCES.md there has their authors
and licences. A decomposition proves itself: it is checked exactly, as any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capacity.exact.types import Indices, Term, Vector, vector
from capacity.rank.method import Goal, Method, Problem
from capacity.rank.reductions.relabelling import Relabelling, relabelling
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.verifier.kinds.decomposition import Decomposition
from capacity.tensor.dense import from_dense
from capacity.tensor.names import named_tensor

FOLDER = Path(__file__).parents[1] / "schemes" / "published"


def published_schemes(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Look for a product of matrices that the core is, with fewer terms than are known."""
    core = problem.core
    upper = goal.upper
    for n_terms, name in _of_shape(core.tensor.shape):
        if n_terms >= upper:
            continue
        terms = _terms(core.tensor.astype(np.int64), name, n_terms)
        if terms is not None:
            upper = n_terms
            yield (Decomposition(tuple(core.lifted(terms))),)


@cache
def _files() -> dict[tuple[int, ...], list[tuple[int, str]]]:
    """Numbers of terms and names of the tensors of all files, by their sorted sizes."""
    found: dict[tuple[int, ...], list[tuple[int, str]]] = {}
    for path in sorted(FOLDER.glob("matrices-*.npz")):
        family, sizes, n_terms = path.stem.split("-")
        n, m, p = map(int, sizes.split("x"))
        shape = tuple(sorted((n * m, m * p, p * n)))
        found.setdefault(shape, []).append((int(n_terms), f"{family}:{sizes}"))
    return found


def _of_shape(shape: tuple[int, ...]) -> list[tuple[int, str]]:
    return _files().get(tuple(sorted(shape)), [])


def _terms(tensor: Indices, name: str, n_terms: int) -> list[Term] | None:
    """The terms of a file, if a tensor is the named one with modes and indices in another order."""
    named = named_tensor(name)
    given = from_dense(tensor)
    if given.n_entries != named.n_entries:
        return None
    array = named.to_numpy()
    for order in permutations(range(3)):
        if tuple(named.shape[mode] for mode in order) != tensor.shape:
            continue
        found = relabelling(given, from_dense(np.ascontiguousarray(array.transpose(order))))
        if found is not None:
            columns = [_factors(name, n_terms)[mode] for mode in order]
            vectors = [_vectors(of, found, mode) for mode, of in enumerate(columns)]
            return [*zip(*vectors, strict=True)]
    return None


@cache
def _factors(name: str, n_terms: int) -> tuple[NDArray[Any], ...]:
    from capacity.rank.schemes.files import read_decomposition

    return read_decomposition(FOLDER / f"{name.replace(':', '-')}-{n_terms}.npz").matrices


def _vectors(columns: NDArray[Any], found: Relabelling, mode: int) -> Iterator[Vector]:
    """The columns of a factor, with a tensor's own indices and signs in that mode."""
    indices, signs = found.indices[mode].tolist(), found.signs[mode].tolist()
    for column in columns.T.tolist():
        at = [i for i, x in enumerate(column) if x]
        yield vector([indices[i] for i in at], [signs[i] * Fraction(column[i]) for i in at])


PUBLISHED_SCHEMES = Method("published scheme", published_schemes, sides=("upper",))
