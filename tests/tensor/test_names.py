"""Names of tensors stand for those of the literature."""

from __future__ import annotations

import pytest

from capacity.errors import CapacityError, InvalidArgumentError
from capacity.tensor import (
    SparseTensor,
    complex_numbers,
    cyclic_group,
    determinant,
    dicke_state,
    dihedral_group,
    exterior_algebra,
    ghz_state,
    group_algebra,
    laderman_products,
    lie_algebra,
    matrix_multiplication,
    named_tensor,
    permanent,
    polynomial_product,
    polynomials_modulo,
    product_group,
    quaternion_group,
    quaternions,
    symmetric_group,
    triangular_matrices,
    truncated_polynomials,
    w_state,
)  # fmt: skip
from capacity.tensor.names import NAMED, PAIRS, is_named

EVERY = [
    ("matrices:2x3x4", matrix_multiplication(2, 3, 4)),
    ("polynomials:2x3", polynomial_product(2, 3)),
    ("truncated:4", truncated_polynomials(4)),
    # x^2 - 2
    ("modulo:-2,0,1", polynomials_modulo([-2, 0, 1])),
    ("groups:5", group_algebra(cyclic_group(5))),
    ("groups:2x2", group_algebra(product_group(cyclic_group(2), cyclic_group(2)))),
    ("symmetric:3", group_algebra(symmetric_group(3))),
    ("complex:", complex_numbers()),
    ("quaternions:", quaternions()),
    ("triangular:3", triangular_matrices(3)),
    ("w:4", w_state(4)),
    ("ghz:3", ghz_state(3)),
    ("ghz:3x4", ghz_state(3, 4)),
    ("determinant:3", determinant(3)),
    ("permanent:3", permanent(3)),
    ("dihedral:3", group_algebra(dihedral_group(3))),
    ("quaternion-group:", group_algebra(quaternion_group())),
    ("exterior:2", exterior_algebra(2)),
    ("dicke:4x2", dicke_state(4, 2)),
    ("laderman:1,6,7", laderman_products(1, 6, 7)),
    *((f"{family}:3", lie_algebra(family, 3)) for family in ("gl", "sl", "so", "heisenberg")),
]


@pytest.mark.parametrize(("name", "tensor"), EVERY, ids=[name for name, _ in EVERY])
def test_a_name_is_the_tensor(name: str, tensor: SparseTensor) -> None:
    assert named_tensor(name) == tensor


def test_each_of_the_names_is_tried() -> None:
    # test_theory.py tries the products of structured matrices
    pairs = {f"{left}-{right}" for left, right in PAIRS}
    assert {name.split(":")[0] for name, _ in EVERY} == set(NAMED) - pairs


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("matrixes:3x3x3", "Did you mean `matrices`"),
        ("matrices:3x3", "matrices:NxMxP"),
        ("quaternions:4", "must be quaternions:"),
        ("3x3x3", "such as matrices"),
        ("w:-2", "-2"),
    ],
)
def test_a_wrong_name_is_refused_in_words(name: str, why: str) -> None:
    with pytest.raises(InvalidArgumentError, match=why):
        named_tensor(name)


@pytest.mark.parametrize("name", ["matrices:99999x99999x99999", "w:999999999", "symmetric:999"])
def test_a_tensor_that_is_too_large_is_refused_before_it_is_made(name: str) -> None:
    with pytest.raises(CapacityError):
        named_tensor(name)


@pytest.mark.parametrize("name", ["c:3", "https://example.org/3", "a.ttl", "matrices:3x3x", "x"])
def test_what_may_be_a_file_is_no_name(name: str) -> None:
    assert not is_named(name)
