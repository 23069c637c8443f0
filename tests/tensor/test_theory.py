"""Tensors of theory by their definitions: structured products, Lie algebras, groups, states."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from capacity.errors import InvalidArgumentError
from capacity.tensor import (
    dicke_state,
    dihedral_group,
    exterior_algebra,
    group_algebra,
    laderman_products,
    lie_algebra,
    matrix_multiplication,
    named_tensor,
    quaternion_group,
    read_tensor,
    structured_product,
    w_state,
)
from capacity.tensor.theory.algebras import checked_group

PUBLISHED = sorted(
    (Path(__file__).parents[1] / "rank/schemes/data/structured-flip-cpd-MIT").glob("*.tns")
)
STRUCTURE = {
    "g": "general", "u": "upper", "l": "lower", "s": "symmetric", "k": "skew", "w": "wedge",
    "t": "transpose",
}  # fmt: skip
# a matrix of each structure, of any matrix
OF = {
    "general": lambda A: A,
    "upper": np.triu,
    "lower": np.tril,
    "symmetric": lambda A: A + A.T,
    "skew": lambda A: A - A.T,
    "wedge": lambda A: A - A.T + np.diag(np.diag(A)),
}


def free_entries(A: np.ndarray, structure: str) -> np.ndarray:
    n = len(A)
    kept = {"general": lambda i, j: True, "lower": lambda i, j: i >= j, "skew": lambda i, j: i < j}
    keep = kept.get(structure, lambda i, j: i <= j)
    return np.array([A[i, j] for i, j in itertools.product(range(n), repeat=2) if keep(i, j)])


@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.parametrize("left", OF)
@pytest.mark.parametrize("right", [*OF, "transpose"])
def test_a_structured_product_multiplies_matrices(left: str, right: str, n: int) -> None:
    rng = np.random.default_rng(n)
    X, Z = (OF[left](rng.integers(-9, 10, (n, n))) for _ in range(2))
    Y = Z.T if right == "transpose" else OF[right](rng.integers(-9, 10, (n, n)))
    T = structured_product(left, right, n).to_numpy()
    y = free_entries(Z, left) if right == "transpose" else free_entries(Y, right)
    product = np.einsum("abc,a,b->c", T, free_entries(X, left), y)
    XY = X @ Y
    expected = XY[np.triu_indices(n)] if right == "transpose" else XY.ravel()
    assert product.tolist() == expected.tolist()
    if (left, right) != ("general", "general"):
        assert named_tensor(f"{left}-{right}:{n}") == structured_product(left, right, n)


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.stem)
def test_structured_products_are_the_published_tensors(path: Path) -> None:
    left, right, n = re.match(r"(\w)(\w)-(\d)_", path.name).groups()  # type: ignore[union-attr]
    T = read_tensor(path)
    assert structured_product(STRUCTURE[left], STRUCTURE[right], int(n)) == T
    if (left, right) != ("g", "g"):
        assert named_tensor(f"{STRUCTURE[left]}-{STRUCTURE[right]}:{n}") == T


@pytest.mark.parametrize(
    ("family", "n", "dimension"),
    [("gl", 2, 4), ("gl", 3, 9), ("sl", 2, 3), ("sl", 3, 8), ("so", 3, 3), ("so", 4, 6),
     ("heisenberg", 3, 3), ("heisenberg", 4, 5)],
)  # fmt: skip
def test_a_lie_algebra_has_its_identities(family: str, n: int, dimension: int) -> None:
    T = lie_algebra(family, n).to_numpy()
    assert T.shape == (dimension,) * 3
    assert (-T.transpose(1, 0, 2) == T).all()
    rng = np.random.default_rng(0)
    x, y, z = rng.integers(-5, 6, (3, dimension))

    def bracket(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.einsum("abc,a,b->c", T, a, b)

    jacobi = bracket(x, bracket(y, z)) + bracket(y, bracket(z, x)) + bracket(z, bracket(x, y))
    assert not jacobi.any()
    # heisenberg's has a centre, and what it brackets to lies there
    assert bool(bracket(x, bracket(y, z)).any()) == (family != "heisenberg")
    assert named_tensor(f"{family}:{n}") == lie_algebra(family, n)


def test_so_3_is_the_cross_product_but_for_signs() -> None:
    T = lie_algebra("so", 3).to_numpy()
    cross = np.array([[np.cross(a, b) for b in np.eye(3, dtype=int)] for a in np.eye(3, dtype=int)])
    # E_12, E_13, E_23 are the axes z, -y, x
    signs = np.array([1, -1, 1])
    turned = cross[::-1, ::-1, ::-1] * signs[:, None, None] * signs[:, None] * signs
    assert (-turned == T).all()


def test_the_exterior_algebra_is_associative_and_its_vectors_anticommute() -> None:
    T = exterior_algebra(3).to_numpy()
    assert (np.einsum("abx,xcd->abcd", T, T) == np.einsum("bcx,axd->abcd", T, T)).all()
    vectors = [1, 2, 4]
    for a, b in itertools.product(vectors, repeat=2):
        assert (T[a, b] == -T[b, a]).all()
    assert (T[0] == np.eye(8)).all()
    # products of all three in their order
    assert T[T[1, 2].argmax(), 4].tolist() == [0] * 7 + [1]


def test_groups_of_symmetries_and_of_quaternions() -> None:
    for n in (1, 2, 3, 4, 5, 6):
        table = checked_group(dihedral_group(n))
        rotations = table[:n, :n]
        assert (rotations == (np.arange(n)[:, None] + np.arange(n)) % n).all()
        # each reflection is its own inverse
        assert (np.diag(table)[n:] == 0).all()
        assert bool((table != table.T).any()) == (n > 2)
    table = checked_group(quaternion_group())
    # 1 and -1 are the elements whose square is 1, and all other squares are -1
    assert np.diag(table).tolist() == [0, 0] + [1] * 6
    assert named_tensor("quaternion-group:") == group_algebra(quaternion_group())
    assert named_tensor("dihedral:4") == group_algebra(dihedral_group(4))


def test_dicke_states_have_their_excitations() -> None:
    for n in range(1, 6):
        assert dicke_state(n, 1) == w_state(n)
        for k in range(1, n + 1):
            T = dicke_state(n, k).to_numpy()
            assert ((np.indices(T.shape).sum(axis=0) == k) == T).all()
    assert named_tensor("dicke:4x2") == dicke_state(4, 2)


def test_laderman_s_products_add_up_to_the_product_of_matrices() -> None:
    assert laderman_products(*range(1, 24)) == matrix_multiplication(3, 3, 3)
    parts = np.array([laderman_products(number).to_numpy() for number in range(1, 24)])
    assert all(np.linalg.matrix_rank(part.reshape(9, 81)) == 1 for part in parts)
    assert (parts[[0, 5, 6]].sum(axis=0) == named_tensor("laderman:1,6,7").to_numpy()).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: structured_product("uper", "general", 3), "`left`.*Did you mean `upper`"),
        (lambda: structured_product("upper", "transposed", 3), "`right`.*Did you mean `transpose`"),
        (lambda: structured_product("upper", "lower", 13), "`n` must be at most 12; got 13"),
        (lambda: structured_product("skew", "lower", 1), "`n` must be an integer of at least 2"),
        (lambda: lie_algebra("su", 2), "`family`"),
        (lambda: lie_algebra("sl", 1), "`n` must be an integer of at least 2"),
        (lambda: exterior_algebra(9), "`n` must be at most 8"),
        (lambda: dihedral_group(0), "`n` must be an integer of at least 1"),
        (lambda: dicke_state(3, 4), "`k` must be at most 3"),
        (lambda: laderman_products(), "numbered from 1 to 23, each once"),
        (lambda: laderman_products(3, 3), "numbered from 1 to 23, each once"),
        (lambda: laderman_products(24), "numbered from 1 to 23, each once"),
        (lambda: named_tensor("uper-general:3"), "upper-general"),
    ],
)
def test_what_is_no_such_tensor_is_refused(make: object, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make()  # type: ignore[operator]
