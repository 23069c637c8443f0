"""Certificates to JSON and back, and to files.

Reading trusts nothing: what hasn't the form of a certificate is a `CertificateError`, and what has
it is still only a claim, for `capacity.rank.verify` to check.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from capacity.errors import CertificateError
from capacity.rank.arrays import Indices
from capacity.rank.certificate import (
    Argument,
    Boxes,
    Certificate,
    Decomposition,
    Diagonalization,
    Enclosure,
    Koszul,
    Pencil,
    Substitution,
    Unfolding,
    Vector,
    View,
)

FORMAT = "capacity certificate 1"


def certificate_to_dict(certificate: Certificate) -> dict[str, Any]:
    """Write a certificate as JSON-ready data."""
    return {
        "format": FORMAT,
        "quantity": certificate.quantity,
        "side": certificate.side,
        "value": certificate.value,
        "by": certificate.by,
        "facts_sha256": certificate.facts_sha256,
        "multi": certificate.multi,
        "arguments": [_argument_to_dict(argument) for argument in certificate.arguments],
    }


def certificate_from_dict(data: object) -> Certificate:
    """Read what `certificate_to_dict` wrote.

    Raises
    ------
    CertificateError
        If the data hasn't the form of a certificate.
    """
    fields = _mapping(data, "a certificate")
    if fields.get("format") != FORMAT:
        got = fields.get("format")
        # of nested data not even the text can be written
        what = repr(got[:60]) if isinstance(got, str) else type(got).__name__
        raise CertificateError(f"A certificate must have the format {FORMAT!r}; got {what}.")
    quantity, side = _field(fields, "quantity", str), _field(fields, "side", str)
    if quantity not in ("rank", "effective_rank") or side not in ("lower", "upper"):
        raise CertificateError(f"A certificate is of no {quantity!r}, {side!r}.")
    arguments = tuple(map(_argument_from_dict, _field(fields, "arguments", list)))
    for argument in arguments:
        if side not in argument.sides:
            raise CertificateError(f"{argument.kind!r} can't argue for a {side} bound.")
    return Certificate(
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
        if isinstance(value, View):
            subjects, predicates, objects = (of.tolist() for of in value.indices)
            data |= {"subjects": subjects, "predicates": predicates, "objects": objects}
            data["bases"] = [None if P is None else P.tolist() for P in value.bases]
        elif isinstance(argument, Enclosure) and name == "factors":
            data[name] = [factor.tolist() for factor in argument.factors]
        else:
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
            _indices(fields, "eliminated"),
            _field(fields, "prime", int),
        )
    if kind == Substitution.kind:
        return Substitution(_view(fields), _pairs(fields, "moves"))
    if kind == Koszul.kind:
        return Koszul(
            _view(fields),
            _field(fields, "mode", int),
            _field(fields, "p", int),
            _field(fields, "prime", int),
            _field(fields, "value", int),
        )
    if kind == Diagonalization.kind:
        return Diagonalization(
            _view(fields),
            _field(fields, "mode", int),
            _coefficients(_field(fields, "combination", list), "combination"),
            _field(fields, "value", int),
        )
    if kind == Pencil.kind:
        return Pencil(
            _field(fields, "mode", int), _indices(fields, "slices"), _field(fields, "value", int)
        )
    if kind == Enclosure.kind:
        a, b, c = (_reals(f) for f in _items(_field(fields, "factors", list), 3, "factors"))
        if len({f.shape[1] for f in (a, b, c)}) != 1:
            raise CertificateError("`factors` must have as many columns each.")
        radius = _field(fields, "radius", float)
        mode, fibers = _field(fields, "mode", int), _pairs(fields, "fibers")
        varying = _indices(fields, "varying")
        return Enclosure(_view(fields), (a, b, c), varying, radius, mode, fibers)
    if kind == Boxes.kind:
        return Boxes(_indices(fields, "box", least=-1))
    if kind == Decomposition.kind:
        return Decomposition(tuple(map(_term, _field(fields, "terms", list))))
    raise CertificateError(f"There is no argument of the kind {kind!r}.")


def _view(fields: Mapping[str, object]) -> View:
    bases = _items(_field(fields, "bases", list), 3, "bases")
    return View(
        (_indices(fields, "subjects"), _indices(fields, "predicates"), _indices(fields, "objects")),
        (_matrix(bases[0]), _matrix(bases[1]), _matrix(bases[2])),
    )


def _matrix(data: object) -> Indices | None:
    if data is None:
        return None
    rows = [_coefficients(row, "a row of a basis") for row in _items(data, None, "a basis")]
    if len({len(row) for row in rows}) != 1:
        raise CertificateError("A basis must be a matrix.")
    return np.stack(rows)


def _reals(data: object) -> NDArray[np.float64]:
    rows = [_items(row, None, "a row of a factor") for row in _items(data, None, "a factor")]
    if len({len(row) for row in rows}) != 1 or not rows[0]:
        raise CertificateError("A factor must be a matrix.")
    if not all(type(x) is float and math.isfinite(x) for row in rows for x in row):
        raise CertificateError("A factor must hold finite floating-point numbers.")
    return np.array(rows, np.float64)


def _coefficients(data: object, what: str) -> Indices:
    values = [_integer(x) for x in _items(data, None, what)]
    if any(abs(x) > 2**20 for x in values):
        raise CertificateError(f"{what} must hold integers of at most 2^20.")
    return np.array(values, np.int64)


def _term(data: object) -> tuple[Vector, Vector, Vector]:
    def vector(data: object) -> Vector:
        indices, values = _items(data, 2, "a vector")
        i = tuple(_integer(x) for x in _items(indices, None, "indices"))
        try:
            x = tuple(_fraction(c) for c in _items(values, len(i), "coefficients"))
        except (ValueError, ZeroDivisionError) as error:
            raise CertificateError(f"A coefficient must be a fraction; {error}.") from None
        return i, x

    a, b, c = _items(data, 3, "a term")
    return vector(a), vector(b), vector(c)


def _fraction(data: object) -> Fraction:
    # no exponents: "1e300000000" is a short text and a long number
    if not isinstance(data, str) or not re.fullmatch(r"-?\d{1,400}(/\d{1,400})?", data):
        raise ValueError(f"got {data!r:.60}")
    return Fraction(data)


def _items(data: object, n: int | None, what: str) -> list[object]:
    if not isinstance(data, list) or (n is not None and len(cast(list[object], data)) != n):
        raise CertificateError(f"{what} must be a list{'' if n is None else f' of {n}'}.")
    return cast(list[object], data)


def _integer(data: object) -> int:
    if not isinstance(data, int) or isinstance(data, bool) or abs(data) >= 2**63:
        raise CertificateError("An index must be an integer of 64 bits.")
    return data


def _mapping(data: object, what: str) -> Mapping[str, object]:
    if not isinstance(data, dict):
        raise CertificateError(f"{what} must be a JSON object; got {type(data).__name__}.")
    return cast(dict[str, object], data)


def _field(fields: Mapping[str, object], name: str, kind: Callable[..., Any]) -> Any:
    value = fields.get(name)
    if type(value) is not kind:
        raise CertificateError(f"`{name}` must be of type {kind.__name__}; got {value!r:.60}.")
    if isinstance(value, int) and abs(value) >= 2**63:
        raise CertificateError(f"`{name}` must be an integer of 64 bits.")
    return value


def _indices(fields: Mapping[str, object], name: str, *, least: int = 0) -> Indices:
    values = [_integer(x) for x in _items(_field(fields, name, list), None, name)]
    if any(not least <= x < 2**31 for x in values):
        raise CertificateError(f"`{name}` must hold indices from {least} on.")
    return np.array(values, dtype=np.int64)


def _pairs(fields: Mapping[str, object], name: str) -> Indices:
    flat = [x for pair in _field(fields, name, list) for x in _items(pair, 2, f"each of {name}")]
    return _indices({name: flat}, name).reshape(-1, 2)
