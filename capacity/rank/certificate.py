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
`Boxes`            upper  the number of boxes that facts fill
`Decomposition`    upper  the number of simple tensors that add up to facts
=================  =====  ====================================================================
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from capacity.errors import CertificateError

Side: TypeAlias = Literal["lower", "upper"]
Quantity: TypeAlias = Literal["rank", "effective_rank"]
Indices: TypeAlias = NDArray[np.int64]
# a sparse vector: indices of one mode, and a coefficient for each
Vector: TypeAlias = tuple[tuple[int, ...], tuple[Fraction, ...]]
FORMAT = "capacity certificate 1"


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


Argument: TypeAlias = Unfolding | Substitution | Boxes | Decomposition


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
        return {
            "format": FORMAT,
            "quantity": self.quantity,
            "side": self.side,
            "value": self.value,
            "by": self.by,
            "facts_sha256": self.facts_sha256,
            "multi": self.multi,
            "arguments": [_argument_to_dict(argument) for argument in self.arguments],
        }

    @classmethod
    def from_dict(cls, data: object) -> Certificate:
        """Read what `to_dict` wrote.

        Raises
        ------
        CertificateError
            If the data hasn't the form of a certificate.
        """
        fields = _mapping(data, "a certificate")
        if fields.get("format") != FORMAT:
            raise CertificateError(
                f"A certificate must have the format {FORMAT!r}; got {fields.get('format')!r}."
            )
        quantity, side = _field(fields, "quantity", str), _field(fields, "side", str)
        if quantity not in ("rank", "effective_rank") or side not in ("lower", "upper"):
            raise CertificateError(f"A certificate is of no {quantity!r}, {side!r}.")
        arguments = tuple(map(_argument_from_dict, _field(fields, "arguments", list)))
        for argument in arguments:
            if argument.side != side:
                raise CertificateError(f"{argument.kind!r} can't argue for a {side} bound.")
        return cls(
            quantity,
            side,
            _field(fields, "value", int),
            _field(fields, "by", str),
            arguments,
            _field(fields, "facts_sha256", str),
            _field(fields, "multi", str),
        )


def save_certificates(path: str | os.PathLike[str], certificates: Iterable[Certificate]) -> None:
    """Write certificates to a JSON file, and the folders that it needs."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps([certificate.to_dict() for certificate in certificates])
    Path(path).write_text(text + "\n", encoding="utf-8")


def load_certificates(path: str | os.PathLike[str]) -> list[Certificate]:
    """Read what `save_certificates` wrote.

    Raises
    ------
    CertificateError
        If the file can't be read, or doesn't hold at least one certificate.
    """
    try:
        data: object = json.loads(Path(path).read_text(encoding="utf-8"))
        certificates = [Certificate.from_dict(item) for item in _items(data, None, "the file")]
        if not certificates:
            raise CertificateError("it holds none.")
    except (OSError, ValueError, RecursionError) as error:
        raise CertificateError(
            f"{os.fspath(path)} must hold certificates, as `capacity rank --certificate` writes "
            f"them; {error}"
        ) from None
    return certificates


def _argument_to_dict(argument: Argument) -> dict[str, Any]:
    data: dict[str, Any] = {"kind": argument.kind}
    if isinstance(argument, Decomposition):
        data["terms"] = [
            [[list(indices), [str(x) for x in values]] for indices, values in term]
            for term in argument.terms
        ]
        return data
    for name, value in vars(argument).items():
        data[name] = value.tolist() if isinstance(value, np.ndarray) else value
    return data


def _argument_from_dict(data: object) -> Argument:
    fields = _mapping(data, "an argument")
    kind = fields.get("kind")
    if kind == Unfolding.kind:
        return Unfolding(
            _field(fields, "mode", int),
            _indices(fields, "rows"),
            _pairs(fields, "columns"),
            _indices(fields, "blocks"),
            _field(fields, "prime", int),
        )
    if kind == Substitution.kind:
        return Substitution(_pairs(fields, "moves"))
    if kind == Boxes.kind:
        return Boxes(_indices(fields, "box", least=-1))
    if kind == Decomposition.kind:
        return Decomposition(tuple(map(_term, _field(fields, "terms", list))))
    raise CertificateError(f"There is no argument of the kind {kind!r}.")


def _term(data: object) -> tuple[Vector, Vector, Vector]:
    def vector(data: object) -> Vector:
        indices, values = _items(data, 2, "a vector")
        i = tuple(_integer(x) for x in _items(indices, None, "indices"))
        try:
            x = tuple(Fraction(str(c)) for c in _items(values, len(i), "coefficients"))
        except (ValueError, ZeroDivisionError) as error:
            raise CertificateError(f"A coefficient must be a fraction; {error}.") from None
        return i, x

    a, b, c = _items(data, 3, "a term")
    return vector(a), vector(b), vector(c)


def _items(data: object, n: int | None, what: str) -> list[object]:
    if not isinstance(data, list) or (n is not None and len(cast(list[object], data)) != n):
        raise CertificateError(f"{what} must be a list{'' if n is None else f' of {n}'}.")
    return cast(list[object], data)


def _integer(data: object) -> int:
    if not isinstance(data, int) or isinstance(data, bool):
        raise CertificateError(f"An index must be an integer; got {data!r}.")
    return data


def _mapping(data: object, what: str) -> Mapping[str, object]:
    if not isinstance(data, dict):
        raise CertificateError(f"{what} must be a JSON object; got {type(data).__name__}.")
    return cast(dict[str, object], data)


def _field(fields: Mapping[str, object], name: str, kind: Callable[..., Any]) -> Any:
    value = fields.get(name)
    if type(value) is not kind:
        raise CertificateError(f"`{name}` must be of type {kind.__name__}; got {value!r:.60}.")
    return value


def _indices(fields: Mapping[str, object], name: str, *, least: int = 0) -> Indices:
    values = [_integer(x) for x in _items(_field(fields, name, list), None, name)]
    if any(not least <= x < 2**31 for x in values):
        raise CertificateError(f"`{name}` must hold indices from {least} on.")
    return np.array(values, dtype=np.int64)


def _pairs(fields: Mapping[str, object], name: str) -> Indices:
    flat = [x for pair in _field(fields, name, list) for x in _items(pair, 2, f"each of {name}")]
    return _indices({name: flat}, name).reshape(-1, 2)
