"""Every small functional database, and every small 0/1 tensor of order four, up to renaming."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from capacity.database import Database
from capacity.exact.types import Indices
from capacity.tensor import SparseTensor, from_dense

# an object for each pair of a subject and a predicate, 0 for none; "120/003" is two subjects
Code = str


def functional_classes(n_subjects: int, n_predicates: int, n_objects: int) -> list[Indices]:
    """Functional databases that use every index, one of each class.

    Parameters
    ----------
    n_subjects, n_predicates, n_objects : int
        Numbers of subjects, predicates and objects. Classes are those up to renaming each of them.

    Returns
    -------
    list of ndarrays of int64, shape (n_subjects, n_predicates)
        The object of each pair, from 1, or 0 if it has none; the first of each class in
        lexicographic order.
    """
    n, base = n_subjects * n_predicates, n_objects + 1
    codes = np.arange(base**n)
    weights = base ** np.arange(n - 1, -1, -1)
    digits = codes // weights[:, None] % base
    least = codes.copy()
    for subjects in itertools.permutations(range(n_subjects)):
        for predicates in itertools.permutations(range(n_predicates)):
            moved = digits[[n_predicates * k + q for k in subjects for q in predicates]]
            for objects in itertools.permutations(range(1, base)):
                renamed = np.array((0, *objects))[moved]
                np.minimum(least, (renamed * weights[:, None]).sum(axis=0), out=least)
    found = digits[:, least == codes].T.reshape(-1, n_subjects, n_predicates)
    return [
        cells
        for cells in found
        if cells.any(axis=0).all() and cells.any(axis=1).all()
        and len(np.unique(cells[cells > 0])) == n_objects
    ]  # fmt: skip


def small_databases(most: int) -> Iterator[Code]:
    """Codes of all classes of up to so many subjects, predicates and objects."""
    for shape in itertools.product(range(1, most + 1), repeat=3):
        for cells in functional_classes(*shape):
            yield "/".join("".join(map(str, row)) for row in cells.tolist())


def database_of(code: Code) -> Database:
    """The database of a code."""
    return Database.from_triples(
        (f"s{k}", f"p{q}", f"o{v}")
        for k, row in enumerate(code.split("/"), 1)
        for q, v in enumerate(row, 1)
        if v != "0"
    )


def binary_tensors(order: int) -> list[int]:
    """0/1 tensors of 2 x 2 x ... that aren't zero, the least of each class.

    Classes are those up to flips of the two indices of each mode, and permutations of modes. Bit i
    of a number is entry i of the tensor, in lexicographic order.
    """
    size = 2**order
    codes = np.arange(2**size)
    bits = codes >> np.arange(size)[:, None] & 1
    places = np.arange(size).reshape((2,) * order)
    least = codes.copy()
    for modes in itertools.permutations(range(order)):
        for flips in itertools.product((slice(None), slice(None, None, -1)), repeat=order):
            moved = bits[places.transpose(modes)[flips].ravel()]
            np.minimum(least, (moved << np.arange(size)[:, None]).sum(axis=0), out=least)
    return np.flatnonzero((least == codes) & (codes > 0)).tolist()


def tensor_of(number: int, order: int) -> SparseTensor:
    """The tensor of a number."""
    bits = number >> np.arange(2**order) & 1
    return from_dense(bits.reshape((2,) * order))
