"""`KNOWN_RANKS`: tensors whose rank over the reals is known, or known to lie between two numbers.

Lower ends are theorems. Upper ends are theorems too, or decompositions that the sources write down.
The search of `capacity.rank` uses none of this; its answers are compared with it.

References
----------
* A. Alder, V. Strassen, On the algorithmic complexity of associative algebras, 1981: the rank of an
  algebra of dimension d with t maximal two-sided ideals is at least 2 d - t.
* V. B. Alekseyev, On the complexity of some algorithms of matrix multiplication, 1985.
* V. B. Alekseev, A. V. Smirnov, On the exact and approximate bilinear complexities of
  multiplication of 4 x 2 and 2 x 2 matrices, 2013.
* M. Bläser, On the complexity of the multiplication of matrices of small formats, 2003.
* L. Chen, E. Chitambar, R. Duan, Z. Ji, A. Winter, Tensor rank and stochastic entanglement
  catalysis for multipartite pure states, 2010.
* L. Chen, S. Friedland, The tensor rank of tensor product of two three-qubit W states is eight,
  2018; M. Christandl, A. K. Jensen, J. Zuiddam, Tensor rank is not multiplicative under the tensor
  product, 2018.
* H. F. de Groote, On the complexity of quaternion multiplication, 1975; T. D. Howell, J.-C. Lafon,
  The complexity of the quaternion product, 1975.
* H. Derksen, On the nuclear norm and the singular value decomposition of tensors, 2016; N. Ilten,
  Z. Teitler, Product ranks of the 3 x 3 determinant and permanent, 2016.
* D. G. Glynn, The permanent of a square matrix, 2010.
* J. I. Han, J.-H. Ju, Y. Kim, Recursive Koszul flattenings of determinant and permanent tensors,
  2025, arXiv 2503.12032.
* J. E. Hopcroft, L. R. Kerr, On minimizing the number of multiplications necessary for matrix
  multiplication, 1971.
* J. D. Laderman, A noncommutative algorithm for multiplying 3 x 3 matrices using 23
  multiplications, 1976.
* V. Strassen, Gaussian elimination is not optimal, 1969; S. Winograd, On multiplication of 2 x 2
  matrices, 1971.
* S. Winograd, Some bilinear forms whose multiplicative complexity depends on the field of
  constants, 1977: modulo a polynomial of degree n with k distinct irreducible factors the rank is
  2 n - k.
* N. Yu, E. Chitambar, C. Guo, R. Duan, Tensor rank of the tripartite state |W>^n, 2010.
* J. Zuiddam, A note on the gap between rank and border rank, 2017.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from capacity.display import briefly_shown
from capacity.tensor.operations import kronecker, outer
from capacity.tensor.sparse import SparseTensor
from capacity.tensor.theory.algebras import (
    complex_numbers,
    cyclic_group,
    group_algebra,
    polynomials_modulo,
    product_group,
    quaternions,
    symmetric_group,
    triangular_matrices,
    truncated_polynomials,
)
from capacity.tensor.theory.products import matrix_multiplication, polynomial_product
from capacity.tensor.theory.states import determinant, ghz_state, permanent, w_state


@briefly_shown
@dataclass(frozen=True)
class KnownTensor:
    """A tensor whose rank over the reals is known, or known to lie between two numbers.

    Attributes
    ----------
    name : str
        What it is.
    tensor : SparseTensor
        The tensor.
    lower, upper : int
        Ends of the interval of its rank.
    source : str
        Where both ends come from.
    """

    name: str
    tensor: SparseTensor
    lower: int
    upper: int
    source: str

    @property
    def rank(self) -> int | None:
        """Rank over the reals; None where only an interval is known."""
        return self.lower if self.lower == self.upper else None


def _matrices() -> Iterator[KnownTensor]:
    flat = "as many as entries, and an unfolding"
    # a matrix has n m p products, each in a row or a column of its own if a size is one
    sources = {
        (1, 1, 3): (3, 3, flat), (1, 2, 2): (4, 4, flat), (2, 1, 2): (4, 4, flat),
        (1, 2, 3): (6, 6, flat), (1, 3, 3): (9, 9, flat), (3, 1, 3): (9, 9, flat),
        (2, 2, 2): (7, 7, "Strassen 1969; Winograd 1971"),
        (2, 2, 3): (11, 11, "Hopcroft, Kerr 1971; Alekseyev 1985"),
        (2, 3, 2): (11, 11, "Hopcroft, Kerr 1971; Alekseyev 1985"),
        (2, 2, 4): (14, 14, "Strassen 1969; Alekseev, Smirnov 2013"),
        # without the three b_3k (by substitution) and the a_i3, 2 x 2 times 2 x 3 is left: 3 + 11
        (2, 3, 3): (14, 15, "Hopcroft, Kerr 1971; Alekseyev 1985, and three slices substituted"),
        (3, 3, 3): (19, 23, "Laderman 1976; Bläser 2003"),
    }  # fmt: skip
    for (n, m, p), (lower, upper, source) in sources.items():
        yield KnownTensor(
            f"matrices {n} x {m} times {m} x {p}",
            matrix_multiplication(n, m, p),
            lower,
            upper,
            source,
        )


def _polynomials() -> Iterator[KnownTensor]:
    for m, n in ((2, 2), (2, 3), (3, 3), (3, 4), (4, 4), (5, 5)):
        # no fewer, since the m + n - 1 coefficients of products are independent
        yield KnownTensor(
            f"polynomials of {m} and {n} coefficients", polynomial_product(m, n),
            m + n - 1, m + n - 1, "interpolation (Toom 1963); an unfolding",
        )  # fmt: skip
    for n in range(2, 7):
        yield KnownTensor(
            f"R[x] / (x^{n})", truncated_polynomials(n), 2 * n - 1, 2 * n - 1, "Winograd 1977"
        )
    # irreducible factors over R: x^2 + r x + 1 and x^2 - r x + 1 with r^2 = 2; x^2 + 1, squared;
    # x - 1, x + 1 and x^2 + x + 1; x^3 - 2 has one real root
    for name, modulus, k in (
        ("x^4 + 1", [1, 0, 0, 0, 1], 2), ("(x^2 + 1)^2", [1, 0, 2, 0, 1], 1),
        ("(x^2 - 1) (x^2 + x + 1)", [-1, -1, 0, 1, 1], 3), ("x^3 - 2", [-2, 0, 0, 1], 2),
    ):  # fmt: skip
        rank = 2 * (len(modulus) - 1) - k
        yield KnownTensor(
            f"R[x] / ({name})", polynomials_modulo(modulus), rank, rank, "Winograd 1977"
        )


def _algebras() -> Iterator[KnownTensor]:
    yield KnownTensor("complex numbers", complex_numbers(), 3, 3, "Winograd 1977")
    yield KnownTensor("quaternions", quaternions(), 8, 8, "de Groote 1975; Howell, Lafon 1975")
    for n in range(2, 9):
        # x - 1, x + 1 if n is even, and quadratic factors
        rank = 2 * n - (1 + n // 2)
        yield KnownTensor(
            f"group Z/{n}", group_algebra(cyclic_group(n)), rank, rank, "Winograd 1977"
        )
    for orders in ((2, 2), (2, 2, 2), (3, 3), (2, 4)):
        n = prod(orders)
        # R for each element that is its own inverse, C for each pair of others
        real = prod(2 - order % 2 for order in orders)
        rank = 2 * n - (n + real) // 2
        yield KnownTensor(
            f"group {' x '.join(f'Z/{order}' for order in orders)}",
            group_algebra(product_group(*map(cyclic_group, orders))), rank, rank,
            "R and C, each as often as it occurs; Alder, Strassen 1981",
        )  # fmt: skip
    yield KnownTensor(
        "group S3", group_algebra(symmetric_group(3)), 9, 9,
        "R, R and 2 x 2 matrices (Strassen 1969); Alder, Strassen 1981",
    )  # fmt: skip
    yield KnownTensor(
        "triangular 2 x 2 matrices", triangular_matrices(2), 4, 4,
        "as many as entries; Alder, Strassen 1981",
    )  # fmt: skip
    # substituting the slices of a_i3, then those of b_1k, without those of b_33 and a_11, leaves
    # the product of a 2 x 1 and a 1 x 2 matrix: 3 + 3 + 4
    yield KnownTensor(
        "triangular 3 x 3 matrices", triangular_matrices(3), 10, 10,
        "as many as entries; six slices substituted",
    )  # fmt: skip


def _states() -> Iterator[KnownTensor]:
    for n in range(3, 7):
        yield KnownTensor(
            f"W state of {n} qubits", w_state(n), n, n, "Chen, Chitambar, Duan, Ji, Winter 2010"
        )
    for n, levels in ((3, 2), (4, 2), (5, 2), (3, 4), (4, 3)):
        yield KnownTensor(
            f"GHZ state of order {n}, {levels} levels", ghz_state(n, levels), levels, levels,
            "as many as entries, and an unfolding",
        )  # fmt: skip
    W = w_state(3)
    yield KnownTensor(
        "Kronecker product of two W states", kronecker(W, W), 7, 7, "Yu, Chitambar, Guo, Duan 2010"
    )
    yield KnownTensor(
        "Kronecker product of three W states", kronecker(W, W, W), 16, 16, "Zuiddam 2017"
    )
    yield KnownTensor(
        "outer product of two W states", outer(W, W), 8, 8,
        "Christandl, Jensen, Zuiddam 2018; Chen, Friedland 2018",
    )  # fmt: skip


def _determinants() -> Iterator[KnownTensor]:
    yield KnownTensor(
        "determinant 3 x 3", determinant(3), 5, 5, "Derksen 2016; Ilten, Teitler 2016"
    )
    yield KnownTensor("determinant 4 x 4", determinant(4), 12, 12, "Han, Ju, Kim 2025")
    yield KnownTensor("permanent 3 x 3", permanent(3), 4, 4, "Glynn 2010; Ilten, Teitler 2016")
    yield KnownTensor("permanent 4 x 4", permanent(4), 8, 8, "Glynn 2010; Han, Ju, Kim 2025")


KNOWN_RANKS: tuple[KnownTensor, ...] = (
    *_matrices(), *_polynomials(), *_algebras(), *_states(), *_determinants()
)  # fmt: skip
