"""What a bound rests on, as plain data that goes to JSON and back without loss.

A `Certificate` names the quantity that is bounded, the facts it is about (by their hash, and the
policy for multi-valued pairs), and *arguments* whose values add up to the bound. Arguments hold
indices into ``Database.subjects``, ``predicates`` and ``objects``, and nothing that must be
believed: `capacity.rank.verify` says beside each checker why an argument proves its value.

=================  =====  ====================================================================
argument           side   gives
=================  =====  ====================================================================
`Unfolding`        lower  the size of a nonsingular minor of an unfolding
`Substitution`     lower  the number of moves of the masked substitution game
`Koszul`           lower  the rank of a Koszul flattening over that of a simple tensor
`Boxes`            upper  the number of boxes that facts fill
`Decomposition`    upper  the number of simple tensors that add up to facts
=================  =====  ====================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Side: TypeAlias = Literal["lower", "upper"]
Quantity: TypeAlias = Literal["rank", "effective_rank"]
Indices: TypeAlias = NDArray[np.int64]
# a sparse vector: indices of one mode, and a coefficient for each
Vector: TypeAlias = tuple[tuple[int, ...], tuple[Fraction, ...]]


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
    prime : int
        The blocks are nonsingular modulo this prime.
    """

    kind: ClassVar = "unfolding"
    side: ClassVar[Side] = "lower"
    mode: int
    rows: Indices
    columns: Indices
    blocks: Indices
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
    moves : ndarray of int64, shape (n, 2)
        Pairs (mode, index): the slices that are removed, in this order.
    """

    kind: ClassVar = "substitution"
    side: ClassVar[Side] = "lower"
    moves: Indices

    @property
    def value(self) -> int:
        """The number of moves."""
        return len(self.moves)


@dataclass(frozen=True, eq=False)
class Koszul:
    """The rank of a Koszul flattening of a sub-tensor.

    Attributes
    ----------
    subjects, predicates, objects : ndarray of int64
        Indices of the sub-tensor.
    mode : int
        The mode that is projected.
    projection : ndarray of int64, shape (2p + 1, n)
        Integer combinations of the sub-tensor's n slices of that mode.
    prime : int
        The rank is taken modulo this prime.
    value : int
        The rank of the flattening over C(2p, p), rounded up.
    """

    kind: ClassVar = "koszul"
    side: ClassVar[Side] = "lower"
    subjects: Indices
    predicates: Indices
    objects: Indices
    mode: int
    projection: Indices
    prime: int
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
    side: ClassVar[Side] = "upper"
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
    side: ClassVar[Side] = "upper"
    terms: tuple[tuple[Vector, Vector, Vector], ...]

    @property
    def value(self) -> int:
        """The number of terms."""
        return len(self.terms)


Argument: TypeAlias = Unfolding | Substitution | Koszul | Boxes | Decomposition


@dataclass(frozen=True, eq=False)
class Certificate:
    """A bound and what it rests on.

    Attributes
    ----------
    quantity : {'rank', 'effective_rank'}
    side : {'lower', 'upper'}
    value : int
        The bound: the sum of the arguments' values.
    by : str
        What found it, in words.
    arguments : tuple of Argument
        For the two sides of `Argument`; what those of a lower bound of the
        rank remove leaves the later ones as they are; a lower bound of the effective rank has one.
    facts_sha256 : str
        `Database.facts_sha256` of the facts that the bound holds for.
    multi : str
        The policy for multi-valued pairs under which those facts were made.
    """

    quantity: Quantity
    side: Side
    value: int
    by: str
    arguments: tuple[Argument, ...]
    facts_sha256: str
    multi: str

    def to_dict(self) -> dict[str, Any]:
        """Write the certificate as JSON-ready data."""
        from capacity.rank.certificate_json import certificate_to_dict

        return certificate_to_dict(self)

    @classmethod
    def from_dict(cls, data: object) -> Certificate:
        """Read what `to_dict` wrote.

        Raises
        ------
        CertificateError
            If the data hasn't the form of a certificate.
        """
        from capacity.rank.certificate_json import certificate_from_dict

        return certificate_from_dict(data)
