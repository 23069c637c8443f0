"""Conversion of arguments to JSON and back: a reader and a writer for each form of field."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from capacity.checks import shown
from capacity.errors import CertificateError
from capacity.exact.types import AlgebraicTerm, Indices, Term
from capacity.rank.verifier.argument import Argument, Form, View
from capacity.rank.verifier.kinds import KINDS

MOST_DIGITS = 400
FRACTION = re.compile(rf"-?[0-9]{{1,{MOST_DIGITS}}}(/[0-9]{{1,{MOST_DIGITS}}})?")


def argument_to_dict(argument: Argument, *, of_facts: bool) -> dict[str, Any]:
    """Write an argument as JSON-ready data; one about triples names subjects, and so on."""
    data: dict[str, Any] = {"kind": argument.kind}
    for name, form in argument.forms.items():
        if form == "view":
            data |= _write_view(getattr(argument, name), of_facts=of_facts)
        else:
            data |= _WRITERS.get(form, _plain)(name, getattr(argument, name))
    return data


def argument_from_dict(data: object) -> Argument:
    """Read an argument that `argument_to_dict` wrote.

    Raises
    ------
    CertificateError
        If the data hasn't the form of an argument of a registered kind.
    """
    fields = mapping(data, "an argument")
    kind = fields.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise CertificateError(
            f"The kind of an argument must be one of {', '.join(KINDS)}; got {shown(kind)}. "
            "Other kinds must be registered first (`register_kind`)."
        )
    made = KINDS[kind].argument
    forms = made.forms
    return made(**{name: _READERS[form](fields, name) for name, form in forms.items()})


def _plain(name: str, value: Any) -> dict[str, Any]:
    return {name: value.tolist() if isinstance(value, np.ndarray) else value}


# names of the indices of the modes of a view of triples; those of other tensors are a list
MODES_OF_3 = ("subjects", "predicates", "objects")


def _write_view(view: View, *, of_facts: bool) -> dict[str, Any]:
    indices = [of.tolist() for of in view.indices]
    bases = [None if P is None else P.tolist() for P in view.bases]
    if of_facts and len(indices) == len(MODES_OF_3):
        return {**dict(zip(MODES_OF_3, indices, strict=True)), "bases": bases}
    return {"indices": indices, "bases": bases}


def _write_factors(name: str, factors: Iterable[NDArray[np.float64]]) -> dict[str, Any]:
    return {name: [factor.tolist() for factor in factors]}


def _write_terms(
    name: str, terms: Iterable[Term] | Iterable[AlgebraicTerm], coefficient: Callable[[Any], Any]
) -> dict[str, Any]:
    return {
        name: [
            [[list(indices), [coefficient(x) for x in values]] for indices, values in term]
            for term in terms
        ]
    }


def _write_algebraic_number(coefficients: Iterable[Fraction]) -> list[str]:
    return [str(x) for x in coefficients]


def _write_polynomial(name: str, coefficients: Iterable[int]) -> dict[str, Any]:
    return {name: [str(c) for c in coefficients]}


def _write_fraction(name: str, x: Fraction) -> dict[str, Any]:
    return {name: str(x)}


def items(data: object, n: int | None, what: str) -> list[object]:
    """Return JSON data that must be a list, of length n if it is given."""
    if not isinstance(data, list) or (n is not None and len(cast(list[object], data)) != n):
        raise CertificateError(f"{what} must be a list{'' if n is None else f' of {n} items'}.")
    return cast(list[object], data)


def _integer(data: object) -> int:
    if not isinstance(data, int) or isinstance(data, bool) or abs(data) >= 2**63:
        raise CertificateError(f"An index must be an integer of 64 bits; got {shown(data)}.")
    return data


def mapping(data: object, what: str) -> Mapping[str, object]:
    """Return JSON data that must be an object."""
    if not isinstance(data, dict):
        raise CertificateError(f"{what} must be a JSON object; got {type(data).__name__}.")
    return cast(dict[str, object], data)


def field(fields: Mapping[str, object], name: str, kind: Callable[..., Any]) -> Any:
    """Return a field that must be of a type; an integer must fit 64 bits."""
    value = fields.get(name)
    if type(value) is not kind:
        raise CertificateError(f"`{name}` must be of type {kind.__name__}; got {shown(value)}.")
    if isinstance(value, int) and abs(value) >= 2**63:
        raise CertificateError(f"`{name}` must be an integer of 64 bits; got {shown(value)}.")
    return value


def _indices(fields: Mapping[str, object], name: str, *, least: int = 0) -> Indices:
    values = [_integer(x) for x in items(field(fields, name, list), None, name)]
    if any(not least <= x < 2**31 for x in values):
        raise CertificateError(f"`{name}` must hold indices from {least} to 2^31 - 1.")
    return np.array(values, dtype=np.int64)


def _boxes(fields: Mapping[str, object], name: str) -> Indices:
    return _indices(fields, name, least=-1)


def _pairs(fields: Mapping[str, object], name: str) -> Indices:
    return _rows(fields, name, 2)


def _fibers(fields: Mapping[str, object], name: str) -> Indices:
    places = field(fields, name, list)
    return _rows(fields, name, len(items(places[0], None, f"each of {name}")) if places else 2)


def _rows(fields: Mapping[str, object], name: str, width: int) -> Indices:
    flat = [x for row in field(fields, name, list) for x in items(row, width, f"each of {name}")]
    return _indices({name: flat}, name).reshape(len(fields[name]), width)  # type: ignore[arg-type]


def _coefficients(fields: Mapping[str, object], name: str) -> Indices:
    return _integers(field(fields, name, list), name)


def _integers(data: object, what: str) -> Indices:
    values = [_integer(x) for x in items(data, None, what)]
    if any(abs(x) > 2**20 for x in values):
        raise CertificateError(f"{what} must hold integers from -2^20 to 2^20.")
    return np.array(values, np.int64)


def _read_view(fields: Mapping[str, object], _name: str) -> View:
    if "indices" in fields:
        each = field(fields, "indices", list)
        indices = tuple(_indices({"indices": of}, "indices") for of in each)
    else:
        indices = tuple(_indices(fields, name) for name in MODES_OF_3)
    if len(indices) < 2:
        raise CertificateError(f"A view must have two modes or more; got {len(indices)}.")
    bases = items(field(fields, "bases", list), len(indices), "bases")
    return View(indices, tuple(map(_matrix, bases)))


def _matrix(data: object) -> Indices | None:
    if data is None:
        return None
    rows = [_integers(row, "a row of a basis") for row in items(data, None, "a basis")]
    if len({len(row) for row in rows}) != 1:
        raise CertificateError("A basis must be a matrix with at least one row.")
    return np.stack(rows)


def _read_factors(fields: Mapping[str, object], name: str) -> tuple[NDArray[np.float64], ...]:
    factors = tuple(map(_reals, items(field(fields, name, list), None, name)))
    if len({f.shape[1] for f in factors}) != 1:
        raise CertificateError(f"The matrices of `{name}` must have the same number of columns.")
    return factors


def _reals(data: object) -> NDArray[np.float64]:
    rows = [items(row, None, "a row of a factor") for row in items(data, None, "a factor")]
    if len({len(row) for row in rows}) != 1 or not rows[0]:
        raise CertificateError("A factor must be a matrix with at least one row and one column.")
    if not all(type(x) is float and math.isfinite(x) for row in rows for x in row):
        raise CertificateError("A factor must hold finite floating-point numbers.")
    return np.array(rows, np.float64)


def _read_terms(
    fields: Mapping[str, object], name: str, coefficient: Callable[[object], Any]
) -> tuple[Any, ...]:
    return tuple(
        tuple(_vector(vector, coefficient) for vector in items(term, None, "a term"))
        for term in field(fields, name, list)
    )


def _vector(data: object, coefficient: Callable[[object], Any]) -> tuple[Any, ...]:
    indices, values = items(data, 2, "a vector")
    i = tuple(_integer(x) for x in items(indices, None, "indices"))
    return i, tuple(coefficient(x) for x in items(values, len(i), "coefficients"))


def _read_polynomial(fields: Mapping[str, object], name: str) -> tuple[int, ...]:
    coefficients = [_coefficient(c) for c in field(fields, name, list)]
    if any(c.denominator != 1 for c in coefficients):
        raise CertificateError(f"`{name}` must be a polynomial with integer coefficients.")
    return tuple(c.numerator for c in coefficients)


def _read_fraction(fields: Mapping[str, object], name: str) -> Fraction:
    return _coefficient(fields.get(name))


def _algebraic_number(data: object) -> tuple[Fraction, ...]:
    return tuple(_coefficient(x) for x in items(data, None, "a coefficient"))


def _coefficient(data: object) -> Fraction:
    # no exponents: "1e300000000" is a short text and a long number
    if not isinstance(data, str) or not FRACTION.fullmatch(data):
        raise CertificateError(
            f'A coefficient must be a fraction such as "3/4", with at most {MOST_DIGITS} digits '
            f"above and below; got {shown(data)}."
        )
    return _fraction(data)


# most coefficients have one of a few values: each value is kept in memory once
@lru_cache(maxsize=1024)
def _fraction(text: str) -> Fraction:
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise CertificateError(
            f"A coefficient must be a fraction with a nonzero denominator; got {shown(text)}."
        ) from None


_READERS: dict[Form, Callable[[Mapping[str, object], str], Any]] = {
    "integer": partial(field, kind=int),
    "real": partial(field, kind=float),
    "indices": _indices,
    "slices": _indices,
    "pairs": _pairs,
    "fibers": _fibers,
    "places": _fibers,
    "boxes": _boxes,
    "coefficients": _coefficients,
    "view": _read_view,
    "factors": _read_factors,
    "terms": partial(_read_terms, coefficient=_coefficient),
    "polynomial": _read_polynomial,
    "fraction": _read_fraction,
    "algebraic terms": partial(_read_terms, coefficient=_algebraic_number),
    "name": partial(field, kind=str),
}
# fields of the other forms are written as they are
_WRITERS: dict[Form, Callable[[str, Any], dict[str, Any]]] = {
    "factors": _write_factors,
    "terms": partial(_write_terms, coefficient=str),
    "polynomial": _write_polynomial,
    "fraction": _write_fraction,
    "algebraic terms": partial(_write_terms, coefficient=_write_algebraic_number),
}
