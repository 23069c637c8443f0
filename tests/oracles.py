"""Known answers: databases whose rank is a theorem, and the paper's examples.

Where the value comes from stands beside it; none of these values enters the library.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

from capacity.database.facts import Database

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"

# Figure 1 of Wong 2025
FIGURE_1 = [
    ("Astrid", "born_in", "Singapore"),
    ("Bernard", "born_in", "Singapore"),
    ("Colin", "born_in", "Malaysia"),
    ("Astrid", "lives_in", "Malaysia"),
    ("Bernard", "lives_in", "Singapore"),
    ("Colin", "lives_in", "Malaysia"),
    ("Malaysia", "currency", "Ringgit"),
    ("Singapore", "currency", "Dollar"),
]
# Example 2.4 of Wong 2025
EXAMPLE_2_4 = [(k, q, "v") for k, q in zip("abcde", "fghij", strict=True)]


def database(rows: Sequence[tuple[object, object, object]]) -> Database:
    """A database whose tokens are named by their role, so that no two roles share one."""
    return Database.from_triples([(f"k{k}", f"q{q}", f"v{v}") for k, q, v in rows], multi="keep")


def figure_1() -> Database:
    return Database.from_triples(FIGURE_1)


def example_2_4() -> Database:
    return Database.from_triples(EXAMPLE_2_4)


def cyclic_group(n: int) -> Database:
    """D(k, q) = k + q mod n: the multiplication tensor of R[x]/(x^n - 1)."""
    return database([(k, q, (k + q) % n) for k in range(n) for q in range(n)])


def polynomials(m: int, n: int, *, modulo: int | None = None) -> Database:
    """Product of polynomials with m and n coefficients, maybe modulo a power of x."""
    top = m + n if modulo is None else modulo
    return database([(i, j, i + j) for i in range(m) for j in range(n) if i + j < top])


def matrix_product(a: int, b: int, c: int) -> Database:
    """The a x b by b x c matrix multiplication tensor."""
    ranges = itertools.product(range(a), range(b), range(c))
    return database([((i, j), (j, k), (i, k)) for i, j, k in ranges])


def w_tensor(copies: int = 1) -> Database:
    rows = [((n, a), (n, b), (n, c)) for n in range(copies) for a, b, c in
            [(0, 0, 1), (0, 1, 0), (1, 0, 0)]]  # fmt: skip
    return database(list(rows))


# name -> (database, its rank over the reals)
KNOWN_RANKS: dict[str, tuple[Callable[[], Database], int]] = {
    "Example 2.2": (figure_1, 5),  # Wong 2025; unfolding rank 5, and a decomposition in 5 terms
    "Example 2.4": (example_2_4, 5),  # one slice, a matrix of rank 5
    "single fact": (lambda: database([(0, 0, 0)]), 1),
    "constant 4 x 6": (lambda: database([(k, q, 0) for k in range(4) for q in range(6)]), 1),
    # sum_q (all ones) x e_q x e_q, and the predicate unfolding has rank 5
    "D(k, q) = q": (lambda: database([(k, q, q) for k in range(3) for q in range(5)]), 5),
    "diagonal 6": (lambda: database([(i, i, i) for i in range(6)]), 6),
    "W": (w_tensor, 3),  # de Silva, Lim 2008
    # additive here: JaJa, Takche 1986, one summand with a mode of dimension 2
    "W + W": (lambda: w_tensor(2), 6),
    # R[x]/(f) with distinct real factors: deg for linear ones, 3 for a quadratic without real roots
    "Z/2 (XOR)": (lambda: cyclic_group(2), 2),  # x^2 - 1 = (x-1)(x+1)
    "Z/3": (lambda: cyclic_group(3), 4),  # (x-1)(x^2+x+1): 1 + 3
    "Z/4": (lambda: cyclic_group(4), 5),  # (x-1)(x+1)(x^2+1): 1 + 1 + 3
    "polynomials 2 x 2": (lambda: polynomials(2, 2), 3),  # m + n - 1, Winograd 1980
    "polynomials 2 x 3": (lambda: polynomials(2, 3), 4),
    "modulo x^3": (lambda: polynomials(3, 3, modulo=3), 5),  # 2n - 1, Winograd 1980
    "matrices 1 x 2 x 2": (lambda: matrix_product(1, 2, 2), 4),  # a matrix-vector product
    "matrices 2 x 2 x 2": (lambda: matrix_product(2, 2, 2), 7),  # Strassen 1969, Winograd 1971
    "matrices 2 x 2 x 3": (lambda: matrix_product(2, 2, 3), 11),  # Alekseyev 1985
}
