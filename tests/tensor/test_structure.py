import numpy as np
import pytest
from hypothesis import given

from capacity.database import Database
from capacity.errors import MemoryBudgetError
from capacity.tensor.structure import (
    component_labels,
    stacked_slice_entries,
    unfolding_entries,
)
from capacity.testing import databases
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
