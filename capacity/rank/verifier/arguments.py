"""The arguments of certificates, as plain data.

They hold indices into ``Database.subjects``, ``predicates`` and ``objects``, and nothing that must
be believed: beside the checker of each kind stands why an argument proves its value.

=================  =====  ====================================================================
argument           side   gives
=================  =====  ====================================================================
`Unfolding`        lower  the size of a nonsingular minor of an unfolding
`Substitution`     lower  the number of moves of the masked substitution game
`Koszul`           lower  the rank of a Koszul flattening over that of a simple tensor
`Diagonalization`  both   n, or n + 1, as n x n slices are diagonal in common bases or not
`Pencil`           both   the rank of two slices, by Kronecker's canonical form
`Boxes`            upper  the number of boxes that facts fill
`Decomposition`    upper  the number of simple tensors that add up to facts
`Enclosure`        upper  the number of simple tensors near which some add up to facts
=================  =====  ====================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity.rank.types import Indices

Side: TypeAlias = Literal["lower", "upper"]
# a sparse vector: indices of one mode, and a coefficient for each
Vector: TypeAlias = tuple[tuple[int, ...], tuple[Fraction, ...]]
# a simple tensor: a sparse vector a mode
Term: TypeAlias = tuple[Vector, Vector, Vector]
# what a field of an argument holds: `argument_json` reads and writes each form, and `conversion`
# checks it
Form: TypeAlias = Literal[
    "integer", "real", "indices", "pairs", "boxes", "coefficients", "view", "factors", "terms"
]
Forms: TypeAlias = Mapping[str, Form]


@dataclass(frozen=True, eq=False)
class View:
    """A sub-tensor, maybe in other bases: X = (P_0, P_1, P_2) D[subjects, predicates, objects].

    Whatever the matrices are, the rank of X is at most that of D.

    Attributes
    ----------
    indices : tuple of three ndarrays of int64
        Of the sub-tensor: distinct subjects, predicates and objects.
    bases : tuple of three ndarrays of int64, or None
        P_m, shape (n'_m, n_m), for the n_m indices of mode m; None leaves the mode as it is.
    """

    indices: tuple[Indices, Indices, Indices]
    bases: tuple[Indices | None, Indices | None, Indices | None] = (None, None, None)


@dataclass(frozen=True, eq=False)
class Unfolding:
    """A nonsingular minor of the unfolding of one mode.

    Attributes
    ----------
    mode : int
    rows : ndarray of int64, shape (r,)
        Indices of the mode, distinct.
    columns : ndarray of int64, shape (r, 2)
        Indices of the other two modes in ascending order of modes, distinct.
    blocks : ndarray of int64
        Sizes of the diagonal blocks at the end of the minor; before them stand single pivots.
    eliminated : ndarray of int64
        How many pivots of each block, at its beginning, are to be eliminated while it is sparse.
    prime : int
        The blocks are nonsingular modulo this prime.
    """

    kind: ClassVar = "unfolding"
    forms: ClassVar[Forms] = {
        "mode": "integer",
        "rows": "indices",
        "columns": "pairs",
        "blocks": "indices",
        "eliminated": "indices",
        "prime": "integer",
    }
    sides: ClassVar[tuple[Side, ...]] = ("lower",)
    mode: int
    rows: Indices
    columns: Indices
    blocks: Indices
    eliminated: Indices
    prime: int

    @property
    def value(self) -> int:
        """The size of the minor."""
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class Substitution:
    """Moves of the masked substitution game.

    Attributes
    ----------
    view : View
    moves : ndarray of int64, shape (n, 2)
        Pairs (mode, index): the slices of the view that are removed, in this order. Indices are
        the view's, numbered from 0.
    """

    kind: ClassVar = "substitution"
    forms: ClassVar[Forms] = {"view": "view", "moves": "pairs"}
    sides: ClassVar[tuple[Side, ...]] = ("lower",)
    view: View
    moves: Indices

    @property
    def value(self) -> int:
        """The number of moves."""
        return len(self.moves)


@dataclass(frozen=True, eq=False)
class Koszul:
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

    kind: ClassVar = "koszul"
    forms: ClassVar[Forms] = {
        "view": "view",
        "mode": "integer",
        "p": "integer",
        "prime": "integer",
        "value": "integer",
    }
    sides: ClassVar[tuple[Side, ...]] = ("lower",)
    view: View
    mode: int
    p: int
    prime: int
    value: int


@dataclass(frozen=True, eq=False)
class Diagonalization:
    """Whether the n x n slices of a mode are diagonal in common bases: then the rank is n.

    Attributes
    ----------
    view : View
        Its tensor has n x n slices in the mode.
    mode : int
    combination : ndarray of int64
        Coefficients of the slices, of a sum that is nonsingular; empty if all are singular.
    value : int
        n from above, n + 1 from below.
    """

    kind: ClassVar = "diagonalization"
    forms: ClassVar[Forms] = {
        "view": "view",
        "mode": "integer",
        "combination": "coefficients",
        "value": "integer",
    }
    view: View
    mode: int
    combination: Indices
    value: int

    @property
    def sides(self) -> tuple[Side, ...]:
        """From above if the value is n, from below if it is larger."""
        mode = (self.mode + 1) % 3
        basis = self.view.bases[mode]
        n = len(self.view.indices[mode] if basis is None else basis)
        return ("upper",) if self.value == n else ("lower",)


@dataclass(frozen=True, eq=False)
class Pencil:
    """The rank of a tensor of two slices, which is known exactly.

    Attributes
    ----------
    mode : int
    slices : ndarray of int64, shape (2,)
        Two indices of the mode. From above, the other slices of their components are combinations
        of these two.
    value : int
        The rank of these two slices.
    """

    kind: ClassVar = "pencil"
    forms: ClassVar[Forms] = {"mode": "integer", "slices": "indices", "value": "integer"}
    sides: ClassVar[tuple[Side, ...]] = ("lower", "upper")
    mode: int
    slices: Indices
    value: int


@dataclass(frozen=True, eq=False)
class Boxes:
    """Facts sorted into boxes: sets of subjects, predicates and objects, and all their triples.

    Attributes
    ----------
    box : ndarray of int64, shape (n_triples,)
        For each row of ``Database.triples`` the number of its box, or -1 for none.
    """

    kind: ClassVar = "boxes"
    forms: ClassVar[Forms] = {"box": "boxes"}
    sides: ClassVar[tuple[Side, ...]] = ("upper",)
    box: Indices

    @property
    def value(self) -> int:
        """The number of boxes."""
        return len(np.unique(self.box[self.box >= 0]))


@dataclass(frozen=True, eq=False)
class Decomposition:
    """Simple tensors, each the product of three sparse vectors.

    Attributes
    ----------
    terms : tuple of (vector, vector, vector)
        Over subjects, predicates and objects; a vector is (indices, coefficients).
    """

    kind: ClassVar = "decomposition"
    forms: ClassVar[Forms] = {"terms": "terms"}
    sides: ClassVar[tuple[Side, ...]] = ("upper",)
    terms: tuple[Term, ...]

    @property
    def value(self) -> int:
        """The number of terms."""
        return len(self.terms)


@dataclass(frozen=True, eq=False)
class Enclosure:
    """Simple tensors in floating point, near which there are real ones that add up to facts.

    Attributes
    ----------
    view : View
        A part of the facts, in its own bases.
    factors : tuple of three ndarrays of float64, shapes (n_m, rank)
    varying : ndarray of int64
        The unknowns that vary, numbered along the rows of the three factors.
    radius : float
        By which they vary at most.
    mode : int
    fibers : ndarray of int64, shape (n, 2)
        Fibers of the mode that have a simple tensor each, and so may be anything before.
    """

    kind: ClassVar = "enclosure"
    forms: ClassVar[Forms] = {
        "view": "view",
        "factors": "factors",
        "varying": "indices",
        "radius": "real",
        "mode": "integer",
        "fibers": "pairs",
    }
    sides: ClassVar[tuple[Side, ...]] = ("upper",)
    view: View
    factors: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
    varying: Indices
    radius: float
    mode: int = 2
    fibers: Indices = field(default_factory=lambda: np.zeros((0, 2), np.int64))

    @property
    def value(self) -> int:
        """The number of terms, and of fibers."""
        return self.factors[0].shape[1] + len(self.fibers)


Argument: TypeAlias = (
    Unfolding | Substitution | Koszul | Diagonalization | Pencil | Boxes | Decomposition | Enclosure
)
