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
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, TypeAlias

from capacity.rank.types import Indices

Side: TypeAlias = Literal["lower", "upper"]
# what a field of an argument holds: `argument_json` reads and writes each form, and `conversion`
# checks it. "slices" are indices of the argument's `mode`, and "fibers" pairs of indices of the
# other two in ascending order; "indices" and "pairs" are the argument's own affair
Form: TypeAlias = Literal[
    "integer",
    "real",
    "indices",
    "slices",
    "pairs",
    "fibers",
    "boxes",
    "coefficients",
    "view",
    "factors",
    "terms",
]
Forms: TypeAlias = Mapping[str, Form]


class Argument(Protocol):
    """The data of one argument: a frozen dataclass with the fields that `forms` names.

    Attributes
    ----------
    kind : str
        The name of its kind in JSON.
    forms : mapping
        The form of each field.
    sides : tuple of {'lower', 'upper'}
    value : int
    """

    kind: ClassVar[str]
    forms: ClassVar[Forms]

    @property
    def sides(self) -> tuple[Side, ...]:
        """The sides of an interval that it can argue for."""
        ...

    @property
    def value(self) -> int:
        """The number that it adds to a bound."""
        ...


class FromBelow:
    """Base of arguments for lower bounds alone."""

    @property
    def sides(self) -> tuple[Side, ...]:
        """The sides of an interval that the argument can be for."""
        return ("lower",)


class FromAbove:
    """Base of arguments for upper bounds alone."""

    @property
    def sides(self) -> tuple[Side, ...]:
        """The sides of an interval that the argument can be for."""
        return ("upper",)


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
