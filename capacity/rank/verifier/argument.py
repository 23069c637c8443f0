"""The arguments of certificates, as plain data.

They hold indices of the tensor's modes; for a database, these are indices into
``Database.subjects``, ``predicates`` and ``objects``. Nothing in them is trusted; the proof that an
argument of a kind proves its value is beside the kind's checker.

========================  =====  ================================================================
argument                  side   value
========================  =====  ================================================================
`Unfolding`               lower  the size of a nonsingular minor of an unfolding
`Substitution`            lower  the steps of the substitution method, with unknown entries
`BlockSubstitution`       lower  the same, several independent slices being removed at once
`Koszul`                  lower  the rank of a Koszul flattening, divided by a simple tensor's
`Diagonalization`         both   n if n x n slices are diagonal in common bases, or else n + 1
`AlderStrassen`           lower  2 n - t for an algebra of n dimensions with t maximal ideals
`RankOneLocus`            lower  n + 1 if n slices have no basis of combinations of rank one
`RankOneCompletion`       lower  n + 1 if completions of rank one don't span the space of n objects
`Published`               lower  the bound that a published theorem states of a named tensor
`Cases`                   lower  the steps of the substitution method, cases being distinguished
`Pencil`                  both   the rank of two slices, by Kronecker's canonical form
`PairedSlices`            upper  the sum of the ranks of pairs of slices, computed likewise
`Boxes`                   upper  the number of boxes that equal entries fill
`Decomposition`           upper  the number of simple tensors that add up to the entries
`AlgebraicDecomposition`  upper  the number of such tensors with coefficients in a number field
`ComplexDecomposition`    upper  the number of such tensors with complex coefficients, over C alone
`Enclosure`               upper  the number of terms of a fit that an exact real one is near
`MaximalRank`             upper  the largest rank of the format of a small tensor, by a theorem
========================  =====  ================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, TypeAlias

from capacity.exact.types import Indices

Side: TypeAlias = Literal["lower", "upper"]
# the content of a field of an argument: `argument_json` reads and writes each form, `conversion`
# checks it. "slices" are indices of the argument's `mode`, and "fibers" places in the other modes,
# in ascending order; the meaning of "indices", "pairs" and "places", whose rows are of any one
# length, is up to the argument
Form: TypeAlias = Literal[
    "integer",
    "real",
    "indices",
    "slices",
    "pairs",
    "fibers",
    "places",
    "boxes",
    "coefficients",
    "view",
    "factors",
    "terms",
    "polynomial",
    "fraction",
    "algebraic terms",
    "name",
]
Forms: TypeAlias = Mapping[str, Form]


class Argument(Protocol):
    """The data of one argument: a frozen dataclass with the fields that `forms` names.

    Attributes
    ----------
    kind : str
        Name of its kind in JSON.
    forms : mapping
        Form of each field, by its name.
    sides : tuple of {'lower', 'upper'}
        Sides of an interval that it can bound.
    value : int
        Number that it adds to a bound.
    """

    kind: ClassVar[str]
    forms: ClassVar[Forms]

    @property
    def sides(self) -> tuple[Side, ...]:
        """Sides of an interval that the argument can bound."""
        ...

    @property
    def value(self) -> int:
        """Number that the argument adds to a bound."""
        ...


class Shown:
    """Base of arguments, which are shown by their value: their indices would fill a page."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(value={getattr(self, 'value', None)})"


class FromBelow(Shown):
    """Base of arguments for lower bounds alone."""

    @property
    def sides(self) -> tuple[Side, ...]:
        """The lower side of an interval."""
        return ("lower",)


class FromAbove(Shown):
    """Base of arguments for upper bounds alone."""

    @property
    def sides(self) -> tuple[Side, ...]:
        """The upper side of an interval."""
        return ("upper",)


@dataclass(frozen=True, eq=False, repr=False)
class View:
    """A sub-tensor, in other bases if given: X = (P_0, P_1, ...) T[indices of each mode].

    The rank of X is at most that of T, whatever the matrices are.

    Attributes
    ----------
    indices : tuple of ndarrays of int64
        Indices of the sub-tensor in each mode, each of them once.
    bases : tuple of ndarrays of int64, or None
        Matrices P_m, shape (n'_m, n_m), for the n_m indices of mode m; None is the identity, and so
        is each if they are omitted.
    """

    indices: tuple[Indices, ...]
    bases: tuple[Indices | None, ...] = ()

    def __post_init__(self) -> None:
        # what isn't a tuple is refused later, in words
        if self.bases == () and isinstance(self.indices, tuple):  # pyright: ignore[reportUnnecessaryIsInstance]
            object.__setattr__(self, "bases", (None,) * len(self.indices))

    def __repr__(self) -> str:
        shape = (
            len(i) if b is None else len(b) for i, b in zip(self.indices, self.bases, strict=True)
        )
        return f"View({' x '.join(map(str, shape))})"
