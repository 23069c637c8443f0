"""Type checks and conversions of the fields of arguments, all in this one place.

Checkers compute with products and sums of indices. In an array of int8, for example, these would
wrap where int64 doesn't, and the checker would look at other columns of a minor than those that are
named. So each array is converted to int64 here, before any checker sees it, and only integers pass:
not floating-point numbers, booleans or objects. Sizes of a tensor are below 2^31, so a product of
two of them fits 64 bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from capacity.checks import shown
from capacity.errors import CertificateError
from capacity.exact.types import Indices
from capacity.rank.options import FIELDS
from capacity.rank.verifier.argument import Argument, Form, View
from capacity.rank.verifier.budget import CheckBudget
from capacity.rank.verifier.certificate import Certificate
from capacity.rank.verifier.entries import Refuted, require

# largest entry of a basis: entries of different bases are multiplied with each other
LARGEST_ENTRY = 2**20
# characters of a name
LONGEST_NAME = 200
# steps for checking a number
VALUE = 50
_Argument = TypeVar("_Argument", bound=Argument)


def checked_claim(certificate: Certificate) -> None:
    """Refuse a certificate with an unknown quantity or side, or with a field of a wrong type.

    Raises
    ------
    CertificateError
        If a field of the certificate itself, arguments aside, is wrong.
    """
    for name, known in (
        ("quantity", ("rank", "effective_rank")), ("side", ("lower", "upper")), ("field", FIELDS)
    ):  # fmt: skip
        got = getattr(certificate, name)
        if not isinstance(got, str) or got not in known:
            raise CertificateError(
                f"`{name}` of a certificate must be one of {', '.join(known)}; got {shown(got)}."
            )
    kinds: dict[str, tuple[type, ...]] = {
        "value": (int,),
        "facts_sha256": (str,),
        "multi": (str, type(None)),
        "arguments": (tuple,),
        "groups": (tuple,),
        "border": (bool,),
    }
    for name, allowed in kinds.items():
        got = getattr(certificate, name)
        if type(got) not in allowed:
            names = " or ".join(kind.__name__ for kind in allowed)
            raise CertificateError(
                f"`{name}` of a certificate must be of type {names}; got {shown(got)}."
            )
    groups: tuple[object, ...] = certificate.groups
    if not all(type(group) is tuple and all(type(mode) is int for mode in group)
               for group in groups):  # fmt: skip
        raise CertificateError(
            f"`groups` of a certificate must be tuples of modes, which are integers; got "
            f"{shown(groups)}."
        )
    if abs(certificate.value) >= 2**63:
        raise CertificateError(
            "`value` of a certificate must be an integer of 64 bits; got "
            f"{shown(certificate.value)}."
        )


def checked_argument(argument: _Argument, budget: CheckBudget) -> _Argument:
    """Convert the fields of an argument to their forms; end the check if one has another form.

    The forms are those that its class declares, and a new argument is made of these fields alone.
    """
    kind = type(argument)
    fields: dict[str, Any] = {
        name: _CHECKS[form](getattr(argument, name, None), f"`{name}` of an argument", budget)
        for name, form in kind.forms.items()
    }
    return kind(**fields)


def _integer(value: object, name: str, _budget: CheckBudget) -> int:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    require(whole, f"{name} must be an integer")
    number = int(value)  # type: ignore[call-overload]
    require(abs(number) < 2**63, f"{name} must be an integer of 64 bits")
    return number


def _real(value: object, name: str, _budget: CheckBudget) -> float:
    require(isinstance(value, float) and math.isfinite(value), f"{name} must be a finite number")
    return float(value)  # type: ignore[arg-type]


def _array(value: object, name: str, ndim: int, budget: CheckBudget) -> Indices:
    array = _plain(value)
    # a broadcast view of a single number can have any size
    budget.spend(VALUE * array.size, 10 * array.size)
    require(array.dtype.kind in ("i", "u"), f"{name} must be an array of integers")
    require(array.ndim == ndim, f"{name} must have {ndim} dimensions")
    signed = array.dtype.kind == "i"
    fits = signed or not array.size or int(array.max()) < 2**63
    require(fits, f"{name} must be integers of 64 bits")
    return np.ascontiguousarray(array, np.int64)


def _plain(value: object) -> NDArray[Any]:
    """Return an array as a plain ndarray, and anything else as an empty array, which is refused."""
    if isinstance(value, np.ndarray):
        return np.asarray(cast("NDArray[Any]", value))
    return np.zeros(0, object)


def _indices(value: object, name: str, budget: CheckBudget, *, least: int = 0) -> Indices:
    array = _array(value, name, 1, budget)
    inside = not len(array) or (int(array.min()) >= least and int(array.max()) < 2**31)
    require(inside, "an index is out of range")
    return array


def _boxes(value: object, name: str, budget: CheckBudget) -> Indices:
    return _indices(value, name, budget, least=-1)


def _pairs(value: object, name: str, budget: CheckBudget) -> Indices:
    array = _array(value, name, 2, budget)
    require(array.shape[1] == 2, f"{name} must have two columns")
    return array


def _fibers(value: object, name: str, budget: CheckBudget) -> Indices:
    return _array(value, name, 2, budget)


def _coefficients(value: object, name: str, budget: CheckBudget, ndim: int = 1) -> Indices:
    array = _array(value, name, ndim, budget)
    small = not array.size or max(int(array.max()), -int(array.min())) <= LARGEST_ENTRY
    require(small, f"{name} must be integers of at most {LARGEST_ENTRY:,}")
    return array


def _view(value: object, name: str, budget: CheckBudget) -> View:
    require(type(value) is View, f"{name} must be a View")
    indices = _tuple(getattr(value, "indices", None), None, f"{name} must have modes")
    require(len(indices) > 1, f"{name} must have two modes or more")
    bases = _tuple(
        getattr(value, "bases", None), len(indices), f"{name} must have a basis per mode"
    )
    return View(
        tuple(_indices(of, name, budget) for of in indices),
        tuple(_basis(of, f"a basis of {name}", budget) for of in bases),
    )


def _basis(value: object, name: str, budget: CheckBudget) -> Indices | None:
    if value is None:
        return None
    basis = _coefficients(value, name, budget, 2)
    require(len(basis) > 0, f"{name} must have rows")
    return basis


def _factors(value: object, name: str, budget: CheckBudget) -> tuple[NDArray[np.float64], ...]:
    found: list[NDArray[np.float64]] = []
    for factor in _tuple(value, None, f"{name} must be matrices"):
        array = _plain(factor)
        budget.spend(VALUE * array.size, 10 * array.size)
        real = array.dtype == np.float64 and array.ndim == 2
        require(real, f"{name} must be matrices of float64")
        require(np.isfinite(array).all(), f"{name} must be finite")
        found.append(np.ascontiguousarray(array, np.float64))
    require(len(found) > 1, f"{name} must be two matrices or more")
    return tuple(found)


def _polynomial(value: object, name: str, budget: CheckBudget) -> object:
    found = _tuple(value, None, f"{name} must be a tuple of integers")
    budget.spend(VALUE * len(found))
    require(all(type(c) is int for c in found), f"{name} must be a tuple of integers")
    return value


def _name(value: object, name: str, _budget: CheckBudget) -> object:
    require(type(value) is str and len(value) <= LONGEST_NAME, f"{name} must be a short text")
    return value


def _fraction(value: object, name: str, _budget: CheckBudget) -> object:
    require(type(value) is Fraction, f"{name} must be a Fraction")
    return value


def _algebraic(value: object, budget: CheckBudget) -> bool:
    found = _tuple(value, None, "a coefficient must be a tuple of Fractions")
    budget.spend(VALUE * (10 + len(found)))
    return all(type(x) is Fraction for x in found)


def _algebraic_terms(value: object, name: str, budget: CheckBudget) -> object:
    return _terms(value, name, budget, coefficient=_algebraic)


def _rational(value: object, _budget: CheckBudget) -> bool:
    return type(value) is Fraction


def _terms(
    value: object,
    name: str,
    budget: CheckBudget,
    *,
    coefficient: Callable[[object, CheckBudget], bool] = _rational,
) -> object:
    """Return terms as they are, once checked: tuples, integers and fractions are immutable."""
    for term in _tuple(value, None, f"{name} must be a tuple of terms"):
        for vector in _tuple(term, None, "a term must be a tuple of vectors"):
            indices, values = (
                _tuple(part, None, "indices and coefficients must be tuples")
                for part in _tuple(vector, 2, "a vector must be indices and coefficients")
            )
            budget.spend(VALUE * (100 + len(indices) + len(values)))
            require(all(type(i) is int for i in indices), "an index of a term must be an integer")
            fractions = all(coefficient(x, budget) for x in values)
            require(fractions, "a coefficient must be a Fraction")
    return value


def _tuple(value: object, n: int | None, otherwise: str) -> tuple[object, ...]:
    # a subclass could have another length than it has elements
    if type(value) is not tuple:
        raise Refuted(otherwise)
    found = cast("tuple[object, ...]", value)
    if n not in (None, len(found)):
        raise Refuted(otherwise)
    return found


_CHECKS: dict[Form, Callable[[Any, str, CheckBudget], Any]] = {
    "integer": _integer,
    "real": _real,
    "indices": _indices,
    "slices": _indices,
    "pairs": _pairs,
    "fibers": _fibers,
    "places": _fibers,
    "boxes": _boxes,
    "coefficients": _coefficients,
    "view": _view,
    "factors": _factors,
    "terms": _terms,
    "polynomial": _polynomial,
    "fraction": _fraction,
    "algebraic terms": _algebraic_terms,
    "name": _name,
}
