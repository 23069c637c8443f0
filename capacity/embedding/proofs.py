"""The data of proofs about dimensions, which anybody can check: models, and signs of scores.

A `Witness` is a model whose integer factors do what was asked, so that its dimension is enough. The
two proofs by signs, shattered points and a small norm, prove that fewer dimensions aren't.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity.display import briefly_shown
from capacity.exact.types import Indices


@briefly_shown
@dataclass(frozen=True, eq=False)
class Witness:
    """A model with integer factors whose scores do what was asked.

    Attributes
    ----------
    model : str
        Its family.
    dimension : int
        Its dimension d.
    factors : mapping of str to ndarray of int64
        Its factors, by the names in `capacity.embedding.witnesses.forms`.
    """

    model: str
    dimension: int
    factors: Mapping[str, NDArray[np.int64]]


# what the points are; the rows are queries, objects and subjects
Points: TypeAlias = Literal["objects", "queries", "comparisons"]
# points of which all patterns are looked for, or checked: 2^19 rows
MOST_POINTS = 20
# sides of a matrix of signs, so that entries of A^4 fit 64 bits
SHORT, LONG = 256, 512


@briefly_shown
@dataclass(frozen=True, eq=False)
class Shattered:
    """Points on which rows show every pattern of signs, up to its negation.

    Attributes
    ----------
    kind : {'objects', 'queries', 'comparisons'}
        What the points are, as in `SignMatrix`.
    points : ndarray of int64, shape (m,) or (m, 3)
        The points; of comparisons the relation and the two objects.
    rows : ndarray of int64, shape (2^(m - 1),)
        A row for each pattern.
    """

    kind: Points
    points: Indices
    rows: Indices

    @property
    def dimension(self) -> int:
        """Least dimension of scores with these signs: the number of points."""
        return len(self.points)


@briefly_shown
@dataclass(frozen=True, eq=False)
class SmallNorm:
    """Points and rows whose signs are a matrix of small norm.

    Attributes
    ----------
    kind : {'objects', 'queries', 'comparisons'}
        What the points are, as in `SignMatrix`.
    points : ndarray of int64, shape (n,) or (n, 3)
        The points; of comparisons the relation and the two objects.
    rows : ndarray of int64, shape (m,)
        The rows, all of whose signs at the points are demanded.
    dimension : int
        Least dimension of scores with these signs, as proved by their norm.
    """

    kind: Points
    points: Indices
    rows: Indices
    dimension: int


SignProof: TypeAlias = Shattered | SmallNorm
