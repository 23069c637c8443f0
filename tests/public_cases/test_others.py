"""Inputs of public reports about tables and tensors, each with what is right.

As in `tests.public_cases.test_rdf`. `cases.toml` names the tests of other files, too.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from capacity import Database, load
from capacity.errors import DatabaseFormatError, TensorFormatError
from capacity.rank import verify_decomposition
from capacity.tensor import from_dense, matrix_multiplication, read_tensor

# tables


@pytest.mark.parametrize("index", [False, True])
def test_categories_and_a_named_index_are_columns(index: bool, tmp_path: Path) -> None:
    # apache/arrow#1688, dask/dask#2222; pandas.read_parquet has the same two rows
    frame = pd.DataFrame({"head": ["a", "b"], "relation": ["p", "p"], "tail": ["x", "y"]})
    frame = frame.astype("category")
    (frame.set_index("head") if index else frame).to_parquet(tmp_path / "a.parquet")
    found = load(tmp_path / "a.parquet", columns=["head", "relation", "tail"])
    assert found == Database.from_triples([("a", "p", "x"), ("b", "p", "y")])


def test_the_index_of_dask_is_asked_about(tmp_path: Path) -> None:
    # dask/dask#2222: Dask writes an index without a name as a fourth column, of this name
    frame = pd.DataFrame({"head": ["a"], "relation": ["p"], "tail": ["x"]}, index=["i"])
    path, columns = tmp_path / "part.0.parquet", ["head", "relation", "tail"]
    frame.rename_axis("__null_dask_index__").to_parquet(path)
    with pytest.raises(DatabaseFormatError, match=r"__null_dask_index__.*Pass columns=\['head', "):
        load(path)
    assert load(path, columns=columns) == Database.from_triples([("a", "p", "x")])


def test_quotes_within_cells_of_tsv_are_characters(tmp_path: Path) -> None:
    # SPARQL-Anything/sparql.anything#625, pandas-dev/pandas#39857; IANA's TSV has no quotes
    rows = [('5" disc', "is a", "disc"), ('the "A" side', "is of", "disc"), ("it", "is", 'b"')]
    (tmp_path / "a.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    table = pd.read_csv(tmp_path / "a.tsv", sep="\t", header=None, quoting=csv.QUOTE_NONE)
    assert [*table.itertuples(index=False, name=None)] == rows
    assert load(tmp_path / "a.tsv") == Database.from_triples(rows)


# tensors


def test_factors_over_two_elements_prove_nothing_over_the_rationals() -> None:
    # alphatensor#21, with Strassen's algorithm: without signs it holds modulo 2 alone
    a = [(1, 0, 0, 1), (0, 0, 1, 1), (1, 0, 0, 0), (0, 0, 0, 1), (1, 1, 0, 0), (1, 0, 1, 0),
         (0, 1, 0, 1)]  # fmt: skip
    b = [(1, 0, 0, 1), (1, 0, 0, 0), (0, 1, 0, 1), (1, 0, 1, 0), (0, 0, 0, 1), (1, 1, 0, 0),
         (0, 0, 1, 1)]  # fmt: skip
    c = [(1, 0, 0, 1), (0, 0, 1, 1), (0, 1, 0, 1), (1, 0, 1, 0), (1, 1, 0, 0), (0, 0, 0, 1),
         (1, 0, 0, 0)]  # fmt: skip
    factors = [np.array(rows).T for rows in (a, b, c)]
    product = matrix_multiplication(2, 2, 2)
    left = np.einsum("ar,br,cr->abc", *factors) - product.to_numpy()
    assert left.any()
    assert not (left % 2).any()
    verdict = verify_decomposition(product, factors)
    assert not verdict.proved
    assert "don't add up" in str(verdict.reason)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int64])
def test_products_beyond_a_type_are_exact(dtype: type) -> None:
    # numpy#10964, #13171: 100 * 100 * 100 passes what int8, uint8 and int16 hold
    factors = [np.array([[100]], dtype)] * 3
    assert verify_decomposition(from_dense(np.array([[[10**6]]])), factors).proved
    wrapped = int(np.array(10**6).astype(dtype))
    assert dtype is np.int64 or not verify_decomposition(from_dense([[[wrapped]]]), factors).proved


def test_floats_are_taken_by_their_value() -> None:
    # 2^24 + 1 is no float32, which rounds it to 2^24
    factors = [np.array([[x]], np.float32) for x in (2**24 + 1, 1, 1)]
    assert verify_decomposition(from_dense([[[2**24]]]), factors).proved
    assert not verify_decomposition(from_dense([[[2**24 + 1]]]), factors).proved
    large = np.full((2, 2, 2), 2**40)
    assert from_dense(large).to_numpy().tolist() == large.tolist()


@pytest.mark.parametrize("dtype", ["float16", "float32", "bool", "uint64", ">i4"])
def test_numbers_of_every_type_are_read_from_npy(dtype: str, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((2, 2, 2)).astype(dtype))
    assert read_tensor(tmp_path / "a.npy").to_numpy().tolist() == np.ones((2, 2, 2), int).tolist()


@pytest.mark.parametrize("dtype", ["complex64", "<U1"])
def test_what_is_no_exact_number_is_refused(dtype: str, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((2, 2, 2)).astype(dtype))
    with pytest.raises(TensorFormatError, match=f"it holds {dtype}"):
        read_tensor(tmp_path / "a.npy")
