"""Known answers: databases whose rank is a theorem, and the paper's examples.

Where the value comes from stands beside it, or in `capacity.testing.known_blocks`; none of these
values enters what bounds ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from capacity.database.facts import Database
from capacity.testing import known_blocks as blocks

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


def matrix_product(a: int, b: int, c: int) -> Database:
    """The a x b by b x c matrix multiplication tensor."""
    return database(blocks.matrix_places(a, b, c))


def w_tensor(copies: int = 1) -> Database:
    rows = [((n, a), (n, b), (n, c)) for n in range(copies) for a, b, c in
            [(0, 0, 1), (0, 1, 0), (1, 0, 0)]]  # fmt: skip
    return database(list(rows))


def _of(block: blocks.Block) -> tuple[Callable[[], Database], int]:
    return lambda: database(block.places), block.rank


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
    "Z/2 (XOR)": _of(blocks.cyclic(2)),
    "Z/3": _of(blocks.cyclic(3)),
    "Z/4": _of(blocks.cyclic(4)),
    "polynomials 2 x 2": _of(blocks.polynomials(2, 2)),
    "polynomials 2 x 3": _of(blocks.polynomials(2, 3)),
    "modulo x^3": _of(blocks.truncated(3)),
    "matrices 1 x 2 x 2": _of(blocks.matrix_product(1, 2, 2)),
    "matrices 2 x 2 x 2": _of(blocks.matrix_product(2, 2, 2)),
    "matrices 2 x 2 x 3": _of(blocks.matrix_product(2, 2, 3)),
}
