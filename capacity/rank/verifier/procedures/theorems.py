"""Published theorems that bound the rank of a named tensor from below, each with its field.

This table is trusted: nothing here is proved by the library. A bound over the complex numbers is
one over the real and the rational numbers, since a decomposition over a field is one over a larger
field; a bound over the real numbers alone isn't one over the complex numbers. The product of an
n x m and an m x p matrix has the same rank as those with n, m and p in another order.

======================  ========================================  ======  ==========================
tensor                  bound                                     field   source
======================  ========================================  ======  ==========================
n x m times m x p       n m + m p + n - m + p - 3; n, m, p >= 2   any     Bläser 1999
n x m times m x n       2 m n + 2 n - m - 2; m >= n >= 3          any     Bläser 2003
2 x 2 times 2 x 3       11                                        any     Alekseyev 1985
2 x 2 times 2 x 4       14                                        any     Alekseev, Smirnov 2013
2 x 2 times 2 x 5       17                                        any     Alekseev 2014
group algebra of Z/n    2 n - 1 - floor(n / 2)                    R       Winograd 1977
quaternions             8                                         R       de Groote 1975
W state of n qubits     n                                         C       Chen et al. 2010
determinant 4 x 4       12                                        C       Han, Ju, Kim 2025
permanent 4 x 4         8                                         C       Han, Ju, Kim 2025
======================  ========================================  ======  ==========================

2 x 2 times 2 x 5 has rank 18, and 2 x 2 times 2 x 6 rank 21, over F_2 (Hopcroft, Kerr 1971). That
is no bound over other fields, and neither is in this table. Alder and Strassen's theorem has the
same bound for group algebras, whose dimension `AlderStrassen` limits.

References
----------
* V. B. Alekseyev, On the complexity of some algorithms of matrix multiplication, J. Algorithms 6,
  1985; V. B. Alekseev, A. V. Smirnov, On the exact and approximate bilinear complexities of
  multiplication of 4 x 2 and 2 x 2 matrices, Proc. Steklov Inst. Math. 282, 2013; V. B. Alekseev,
  On bilinear complexity of multiplying 5 x 2 matrix by 2 x 2 matrix, Kazan University 156, 2014.
* M. Bläser, Lower bounds for the multiplicative complexity of matrix multiplication, Computational
  Complexity 8, 1999; On the complexity of the multiplication of matrices of small formats, J.
  Complexity 19, 2003.
* L. Chen, E. Chitambar, R. Duan, Z. Ji, A. Winter, Tensor rank and stochastic entanglement
  catalysis for multipartite pure states, Phys. Rev. Lett. 105, 2010.
* H. F. de Groote, On the complexity of quaternion multiplication, Inf. Process. Lett. 3, 1975.
* J. I. Han, J.-H. Ju, Y. Kim, Recursive Koszul flattenings of determinant and permanent tensors,
  2025, arXiv 2503.12032.
* S. Winograd, Some bilinear forms whose multiplicative complexity depends on the field of
  constants, Math. Systems Theory 10, 1977: modulo a polynomial of degree n with k distinct
  irreducible factors the rank is at least 2 n - k. Over the real numbers, x^n - 1 has
  1 + floor(n / 2) factors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import permutations
from math import isqrt, prod
from typing import NamedTuple

from capacity.errors import InvalidArgumentError
from capacity.tensor.coordinates import LARGEST_ORDER
from capacity.tensor.names import name_and_numbers


class Bound(NamedTuple):
    """A lower bound of a rank, and who proved it.

    Attributes
    ----------
    value : int
        The rank is at least that.
    source : str
        Authors and year.
    complex : bool
        True if the bound holds over the complex numbers, and so over all fields here.
    """

    value: int
    source: str
    complex: bool


@dataclass(frozen=True)
class Theorem:
    """Theorems about the tensors of one name.

    Attributes
    ----------
    numbers_of : callable
        Yields the numbers behind the name for which the tensor has a shape.
    shape : callable
        The shape of the tensor with some numbers, without making it.
    bounds : callable
        Yields the bounds that the theorems state for some numbers.
    """

    numbers_of: Callable[[tuple[int, ...]], Iterable[tuple[int, ...]]]
    shape: Callable[..., tuple[int, ...]]
    bounds: Callable[..., Iterable[Bound]]


def _sizes_of_matrices(shape: tuple[int, ...]) -> Iterator[tuple[int, int, int]]:
    if len(shape) != 3 or not all(shape):
        return
    a, b, c = shape
    n = isqrt(a * c // b)
    if n and not a % n and not c % n and a // n * (c // n) == b:
        yield n, a // n, c // n


def _bounds_of_matrices(*sizes: int) -> Iterator[Bound]:
    if min(sizes) < 2:
        return
    for n, m, p in permutations(sizes):
        yield Bound(n * m + m * p + n - m + p - 3, "Bläser 1999", True)
        if n == p and m >= n >= 3:
            yield Bound(2 * m * n + 2 * n - m - 2, "Bläser 2003", True)
    if sorted(sizes) == [2, 2, 3]:
        yield Bound(11, "Alekseyev 1985", True)
    if sorted(sizes) == [2, 2, 4]:
        yield Bound(14, "Alekseev, Smirnov 2013", True)
    if sorted(sizes) == [2, 2, 5]:
        yield Bound(17, "Alekseev 2014", True)


def _shape_of_matrices(n: int, m: int, p: int) -> tuple[int, ...]:
    return n * m, m * p, n * p


def _cyclic_groups(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    if len(shape) == 3 and len({*shape}) == 1:
        yield shape[:1]


def _bounds_of_groups(*orders: int) -> Iterator[Bound]:
    if len(orders) == 1 and orders[0] >= 1:
        yield Bound(2 * orders[0] - 1 - orders[0] // 2, "Winograd 1977", False)


def _shape_of_groups(*orders: int) -> tuple[int, ...]:
    return (prod(orders),) * 3


def _qubits(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    if {*shape} == {2} and len(shape) >= 2:
        yield (len(shape),)


def _bounds_of_w(n: int) -> Iterator[Bound]:
    if 2 <= n <= LARGEST_ORDER:
        yield Bound(n, "Chen et al. 2010", True)


def _shape_of_w(n: int) -> tuple[int, ...]:
    return (2,) * n


def _of_one(shape: tuple[int, ...], *numbers: int, bound: Bound) -> Theorem:
    """A theorem about a single tensor."""

    def numbers_of(given: tuple[int, ...]) -> list[tuple[int, ...]]:
        return [numbers] if given == shape else []

    def bounds(*given: int) -> list[Bound]:
        return [bound] if given == numbers else []

    def shape_of(*_: int) -> tuple[int, ...]:
        return shape

    return Theorem(numbers_of, shape_of, bounds)


THEOREMS: dict[str, Theorem] = {
    "matrices": Theorem(_sizes_of_matrices, _shape_of_matrices, _bounds_of_matrices),
    "groups": Theorem(_cyclic_groups, _shape_of_groups, _bounds_of_groups),
    "w": Theorem(_qubits, _shape_of_w, _bounds_of_w),
    "quaternions": _of_one((4, 4, 4), bound=Bound(8, "de Groote 1975", False)),
    "determinant": _of_one((4,) * 4, 4, bound=Bound(12, "Han, Ju, Kim 2025", True)),
    "permanent": _of_one((4,) * 4, 4, bound=Bound(8, "Han, Ju, Kim 2025", True)),
}


def published(name: str) -> tuple[tuple[int, ...], Bound] | None:
    """Return the shape of a named tensor, and the largest bound of its rank that is published.

    Parameters
    ----------
    name : str
        A name that `capacity.tensor.named_tensor` takes.

    Returns
    -------
    tuple of int, Bound
        None if there is no such tensor, or no theorem about it. A shape may be larger than memory.

    Examples
    --------
    >>> published("matrices:3x3x3")
    ((9, 9, 9), Bound(value=19, source='Bläser 2003', complex=True))
    >>> published("matrices:1x3x3") is published("groups:-5") is published("w:999999") is None
    True
    """
    try:
        family, numbers = name_and_numbers(name)
    except InvalidArgumentError:
        return None
    theorem = THEOREMS.get(family)
    bounds = list(theorem.bounds(*numbers)) if theorem else []
    if theorem is None or not bounds:
        return None
    return theorem.shape(*numbers), max(bounds, key=lambda bound: bound.value)


def named(shape: tuple[int, ...]) -> Iterator[str]:
    """Yield the names of the tensors of a shape about which there are theorems."""
    for family, theorem in THEOREMS.items():
        for numbers in theorem.numbers_of(shape):
            yield f"{family}:{'x'.join(map(str, numbers))}"
