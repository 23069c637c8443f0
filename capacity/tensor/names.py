"""Named tensors: `matrices:3x3x3` and the like, which denote files."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from capacity.checks import nearest, shown
from capacity.errors import CapacityError, InvalidArgumentError
from capacity.tensor.sparse import SparseTensor
from capacity.tensor.theory.algebras import (
    FAMILIES,
    complex_numbers,
    cyclic_group,
    dihedral_group,
    exterior_algebra,
    group_algebra,
    lie_algebra,
    polynomials_modulo,
    product_group,
    quaternion_group,
    quaternions,
    symmetric_group,
    triangular_matrices,
    truncated_polynomials,
)
from capacity.tensor.theory.products import (
    STRUCTURES,
    laderman_products,
    matrix_multiplication,
    polynomial_product,
    structured_product,
)
from capacity.tensor.theory.states import (
    determinant,
    dicke_state,
    ghz_state,
    permanent,
    w_state,
)

# `--help` says what follows the colon; numbers are short, so that none takes long to read
_NAMED = re.compile(r"([A-Za-z][A-Za-z_-]+|[wW]):(|-?[0-9]{1,9}(?:[x,]-?[0-9]{1,9}){0,31})")


@dataclass(frozen=True)
class NamedTensor:
    """A tensor of the literature that a name denotes, with its parameters.

    Attributes
    ----------
    name : str
        What precedes the colon.
    parameters : str
        What follows it, as help shows it.
    make : callable
        Makes the tensor of its integers.
    least, most : int
        How many integers it takes.
    """

    name: str
    parameters: str
    make: Callable[..., SparseTensor]
    least: int
    most: int


def _groups(*orders: int) -> SparseTensor:
    return group_algebra(product_group(*map(cyclic_group, orders)))


def _modulo(*coefficients: int) -> SparseTensor:
    return polynomials_modulo(coefficients)


def _symmetric(n: int) -> SparseTensor:
    return group_algebra(symmetric_group(n))


def _dihedral(n: int) -> SparseTensor:
    return group_algebra(dihedral_group(n))


def _quaternion_group() -> SparseTensor:
    return group_algebra(quaternion_group())


# products of matrices of two structures, and of one with its transpose
PAIRS = [
    (left, right)
    for left in STRUCTURES
    for right in (*STRUCTURES, "transpose")
    if (left, right) != ("general", "general")
]


NAMED: dict[str, NamedTensor] = {
    one.name: one
    for one in (
        NamedTensor("matrices", "NxMxP", matrix_multiplication, 3, 3),
        NamedTensor("polynomials", "MxN", polynomial_product, 2, 2),
        NamedTensor("truncated", "N", truncated_polynomials, 1, 1),
        NamedTensor("modulo", "C0,C1,...,1", _modulo, 2, 32),
        NamedTensor("groups", "N[xM...]", _groups, 1, 10),
        NamedTensor("symmetric", "N", _symmetric, 1, 1),
        NamedTensor("complex", "", complex_numbers, 0, 0),
        NamedTensor("quaternions", "", quaternions, 0, 0),
        NamedTensor("triangular", "N", triangular_matrices, 1, 1),
        NamedTensor("w", "N", w_state, 1, 1),
        NamedTensor("ghz", "N[xLEVELS]", ghz_state, 1, 2),
        NamedTensor("determinant", "N", determinant, 1, 1),
        NamedTensor("permanent", "N", permanent, 1, 1),
        NamedTensor("dihedral", "N", _dihedral, 1, 1),
        NamedTensor("quaternion-group", "", _quaternion_group, 0, 0),
        NamedTensor("exterior", "N", exterior_algebra, 1, 1),
        NamedTensor("dicke", "NxK", dicke_state, 2, 2),
        NamedTensor("laderman", "I,J,...", laderman_products, 1, 23),
        *(NamedTensor(family, "N", partial(lie_algebra, family), 1, 1) for family in FAMILIES),
        *(
            NamedTensor(f"{left}-{right}", "N", partial(structured_product, left, right), 1, 1)
            for left, right in PAIRS
        ),
    )
}

# all but the products of structured matrices
_FAMILIES = [name for name in NAMED if name not in {f"{left}-{right}" for left, right in PAIRS}]


def is_named(name: str) -> bool:
    """Return whether a text has the form of a tensor's name, known or not.

    Examples
    --------
    >>> is_named("matrices:3x3x3"), is_named("quaternions:"), is_named("https://example.org/3")
    (True, True, False)
    """
    return _NAMED.fullmatch(name) is not None


def named_tensor(name: str) -> SparseTensor:
    """Return the tensor of a name, which denotes a file on the command line.

    Parameters
    ----------
    name : str
        Such as ``matrices:2x3x4``, ``polynomials:3x3``, ``truncated:4``, ``modulo:1,0,1``,
        ``groups:6``, ``groups:2x3``, ``symmetric:3``, ``complex:``, ``quaternions:``,
        ``triangular:3``, ``w:4``, ``ghz:3x2``, ``determinant:3``, ``permanent:3``, ``dihedral:4``,
        ``quaternion-group:``, ``exterior:3``, ``dicke:4x2``, ``laderman:1,6,7``, ``sl:3``,
        ``gl:2``, ``so:4``, ``heisenberg:3`` or, for products of structured matrices,
        ``upper-general:3`` or ``skew-transpose:3`` (`structured_product`).

    Returns
    -------
    SparseTensor
        That of the constructor, such as `matrix_multiplication`.

    Raises
    ------
    InvalidArgumentError
        With the nearest name, if there is none such; if it takes other numbers, or the tensor would
        have too many entries.

    Examples
    --------
    >>> named_tensor("matrices:2x2x2")
    SparseTensor(4 x 4 x 4, 8 entries from 1 to 1)
    """
    family, numbers = name_and_numbers(name)
    try:
        return NAMED[family].make(*numbers)
    except CapacityError as error:
        raise type(error)(f"{shown(name)}: {error}") from None


def name_and_numbers(name: str) -> tuple[str, tuple[int, ...]]:
    """Split a name into the family before the colon and the numbers behind it; no tensor is made.

    Raises
    ------
    InvalidArgumentError
        With the nearest name, if there is none such; if it takes other numbers.

    Examples
    --------
    >>> name_and_numbers("matrices:2x3x4")
    ('matrices', (2, 3, 4))
    """
    found = _NAMED.fullmatch(name)
    if found is None:
        raise InvalidArgumentError(
            f"A tensor's name must be such as matrices:3x3x3; got {shown(name)}."
        )
    one = NAMED.get(found[1].lower())
    if one is None:
        raise InvalidArgumentError(
            f"A tensor's name must begin with one of {', '.join(_FAMILIES)}, or a product such as "
            f"upper-general; got {shown(name)}.{nearest(found[1].lower(), NAMED)}"
        )
    numbers = tuple(int(x) for x in re.split("[x,]", found[2]) if x)
    if not one.least <= len(numbers) <= one.most:
        raise InvalidArgumentError(
            f"The name must be {one.name}:{one.parameters}; got {shown(name)}."
        )
    return one.name, numbers


def written() -> str:
    """Return the forms of all names, for help; those of structured products have one form."""
    forms = ", ".join(f"{name}:{NAMED[name].parameters}" for name in _FAMILIES)
    return f"{forms}, or a product such as upper-general:N or skew-transpose:N"
