"""Indexing, unfoldings and products along a mode are those of the dense array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.database import Database
from capacity.errors import CapacityError, MemoryBudgetError
from capacity.tensor import SparseTensor, as_tensor, w_state
from capacity.tensor.structure import (
    component_labels,
    stacked_slice_entries,
    unfolding_entries,
)
from capacity.testing import databases, integer_tensors
from tests.oracles import figure_1


def test_tensor_of_figure_1_has_the_papers_slices() -> None:
    db = figure_1()
    dense = db.to_numpy()
    objects = [t.text[0] for t in db.objects]  # D, M, R, S
    born = dense[:, [t.text for t in db.predicates].index("born_in")]
    # Example 2.2: a and b were born in s, c in m
    assert [objects[i] for i in born[:3].argmax(axis=1)] == ["S", "S", "M"]
    assert born[3:].sum() == 0
    assert dense.sum() == 8


@given(databases())
def test_dense_and_sparse_agree(db: Database) -> None:
    dense = db.to_numpy()
    assert dense.shape == db.shape
    assert dense.sum() == db.n_triples
    assert np.array_equal(db.to_coo().toarray(), dense)


@given(databases())
def test_unfoldings_and_stacked_slices_hold_the_ones_of_the_dense_tensor(db: Database) -> None:
    dense = db.to_numpy()
    for mode in range(3):
        rows, columns = unfolding_entries(db.tensor(), mode)
        unfolded = np.moveaxis(dense, mode, 0).reshape(dense.shape[mode], -1)
        places = sorted(zip(rows.tolist(), columns.tolist(), strict=True))
        assert places == sorted(map(tuple, np.argwhere(unfolded).tolist()))
        rows, columns, number = stacked_slice_entries(db.tensor(), (mode,))
        n = dense.shape[mode]
        # row (a, i) and column (b, i) belong to slice i
        assert np.array_equal(rows % n, columns % n)
        assert np.array_equal(rows % n, number)
        a, b = (m for m in range(3) if m != mode)
        slices = np.zeros_like(dense)
        index = [np.zeros(0, int)] * 3
        index[mode], index[a], index[b] = rows % n, rows // n, columns // n
        slices[tuple(index)] = 1
        assert np.array_equal(slices, dense)


def test_a_dense_tensor_over_the_budget_is_refused_before_it_is_allocated() -> None:
    n = 20_000
    db = Database.from_triples([(f"k{i}", f"q{i}", f"v{i}") for i in range(n)])
    # 8e12 bytes could not be allocated here
    with pytest.raises(MemoryBudgetError, match=r"8,000,000,000,000.*to_coo"):
        db.to_numpy()
    assert db.to_coo().nnz == n


@given(databases(), databases())
def test_components_of_a_direct_sum_are_those_of_its_parts(a: Database, b: Database) -> None:
    rows = [
        tuple(f"{side}{db.tokens[i].text}" for i in row)
        for side, db in (("a", a), ("b", b))
        for row in db.token_triples
    ]
    total = Database.from_triples(rows, multi="keep")

    def count(db: Database) -> int:
        return len(np.unique(component_labels(db.tensor())))

    assert count(total) == count(a) + count(b)


def test_components_join_facts_that_share_a_token_in_a_role() -> None:
    db = figure_1()
    # people and countries share tokens, but in different roles: two components (Example 2.2)
    labels = component_labels(db.tensor())
    by_predicate = {db.predicates[q].text: labels[i] for i, (_, q, _) in enumerate(db.triples)}
    assert by_predicate["born_in"] == by_predicate["lives_in"] != by_predicate["currency"]


KEYS = [0, -1, (0, 1), (0, 1, 0), (..., 1), (0, ..., 1), slice(None), slice(1, None),
        (slice(None), 1), (slice(None), [1, 0]), ([1], slice(None), 0),
        (slice(None, None, -1), ...), np.array([1, 0]),
        (slice(None), np.array([True, False]))]  # fmt: skip


def dense(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-2, 3, (2, 2, 2))


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_parts_are_those_of_numpy(key: Any, seed: int) -> None:
    array = dense(seed)
    got, want = as_tensor(array)[key], array[key]
    if np.ndim(want) == 0:
        assert type(got) is int
        assert got == want
    else:
        assert isinstance(got, SparseTensor)
        assert got.to_numpy().tolist() == want.tolist()


def test_a_tensor_yields_its_slices() -> None:
    assert list(w_state(3)) == [w_state(3)[0], w_state(3)[1]]
    assert list(as_tensor([5, 0])) == [5, 0]


@pytest.mark.parametrize(
    "key", [2, -3, (0, 0, 0, 0), "a", 0.5, True, None, slice(2, None), [], [0, 0], [2],
            (..., ...)], ids=str,
)  # fmt: skip
def test_what_chooses_no_part_is_refused_in_words(key: Any) -> None:
    with pytest.raises(CapacityError, match=r"[Ii]ndic|index"):
        _ = w_state(3)[key]


@given(integer_tensors(), st.data())
def test_unfoldings_are_those_of_numpy(tensor: SparseTensor, data: Any) -> None:
    mode = data.draw(st.integers(-tensor.order, tensor.order - 1))
    rows = tensor.shape[mode]
    wanted = np.moveaxis(tensor.to_numpy(), mode, 0).reshape(rows, -1)
    assert tensor.unfolding(mode).to_numpy().tolist() == wanted.tolist()


@given(integer_tensors(), st.data())
def test_products_along_a_mode_are_those_of_numpy(tensor: SparseTensor, data: Any) -> None:
    mode = data.draw(st.integers(0, tensor.order - 1))
    shape = (data.draw(st.integers(1, 3)), tensor.shape[mode])
    matrix = np.random.default_rng(data.draw(st.integers(0, 99))).integers(-2, 3, shape)
    wanted = np.moveaxis(np.tensordot(matrix, tensor.to_numpy(), (1, mode)), 0, mode)
    assert tensor.mode_product(matrix, mode).to_numpy().tolist() == wanted.tolist()
    assert tensor.mode_product(as_tensor(matrix), mode) == as_tensor(wanted)


def test_products_are_exact_or_refused() -> None:
    # 2^62 + 2^62 has 64 bits
    big = as_tensor([2**62, 2**62])
    with pytest.raises(CapacityError, match=r"2\^63"):
        big.mode_product([[1, 1]], 0)
    assert big.mode_product([[1, -1]], 0).n_entries == 0


@pytest.mark.parametrize("matrix", [[[1, 0, 0]], [1, 0], [[0.5, 1]], [[1], [2]]], ids=str)
def test_other_matrices_are_refused(matrix: Any) -> None:
    with pytest.raises(CapacityError, match=r"matrix|[Aa]rray"):
        w_state(3).mode_product(matrix, 1)
    with pytest.raises(CapacityError, match="`mode` must be"):
        w_state(3).mode_product([[1, 0]], 3)
    with pytest.raises(CapacityError, match="columns"):
        SparseTensor([[0, 0, 0]], [1], (2, 2**20, 2**20)).unfolding(0)
