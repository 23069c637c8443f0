"""Inputs of public reports about tables, tensors, models and sweeps, each with what is right.

As in `tests.public_cases.test_rdf`. Cases that a test of another file has already are named in
`ELSEWHERE`, by that test.
"""

from __future__ import annotations

import ast
import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from capacity import Database, load
from capacity.errors import TensorFormatError
from capacity.rank import verify_decomposition
from capacity.tensor import from_dense, matrix_multiplication, read_tensor

ROOT = Path(__file__).parents[2]
ELSEWHERE = {
    "apache/arrow-rs#708, facebookincubator/velox#10589: encodings of a second version of Parquet":
        "database/test_parquet_encodings.py::test_files_of_other_writers_are_read",
    "dask/dask#6445: the predicate is the name of a folder":
        "database/test_hive_folders.py::test_the_predicate_is_that_of_the_folder",
    "oborel/obo-relations, mappings: SSSOM, GAF and SNAP begin with lines of comments":
        "database/test_comments.py::test_mappings_of_sssom_are_read_as_they_are",
    "oborel/obo-relations, subsets: OBO Graphs in JSON":
        "database/test_foreign.py::test_a_text_of_another_format_is_named_whatever_it_is_called",
    "comunica/comunica#1712: a header in quotes over IRIs":
        "database/test_literal_predicates.py::test_a_row_of_literals_that_names_the_roles_is_a_header",
    "google-deepmind/alphatensor#3: factors of the transposed product":
        "tensor/test_archives.py::test_the_factors_of_the_transposed_product_are_named",
    "scipy, MATLAB: sparse .npz and .mtx":
        "tensor/test_archives.py::test_a_matrix_comes_back_from_each_file",
    "scipy, MATLAB: .mat":
        "tensor/test_archives.py::test_several_arrays_and_other_programs_files_are_told",
    "huggingface/transformers#3021, #18478, TransformerLens#1609: padding on the left":
        "transformer/test_families.py::test_padding_changes_nothing",
    "fla-org/flash-linear-attention#831, vllm-gaudi#441: sinks":
        "transformer/test_families.py::test_patterns_are_those_that_the_model_returns",
    "huggingface/transformers#17225, text-generation-inference#1060: OPT-350m":
        "transformer/test_public_models.py::test_a_stream_of_two_widths_has_no_terms_and_says_so",
    "NVIDIA/FasterTransformer#778: decoders of BART's family alone":
        "transformer/test_public_models.py::test_a_decoder_alone_is_captured_as_it_runs_and_as_it_is_saved",
    "huggingface/transformers#10329: weights of layers that the configuration lacks":
        "transformer/test_public_models.py::test_weights_of_a_layer_that_the_configuration_lacks_are_refused",
    "QwenLM/Qwen#553, huggingface/tokenizers#1609: a vocabulary of another size":
        "transformer/test_wrong_inputs.py::test_a_tokenizer_of_another_model_is_refused",
    "jessevig/bertviz#67, #133: the parts of T5 and BART":
        "cli/test_attention.py::test_a_part_of_an_encoder_decoder_is_chosen",
    "caches of padded sentences, without their batch":
        "transformer/test_from_tensors.py::"
        "test_a_cache_of_padded_sentences_or_without_its_batch_says_what_to_do",
    "dask/dask#6445, Eventual-Inc/Daft#3576: half of a part":
        "sweep/test_store.py::test_a_shard_that_lacks_a_run_or_has_anothers_is_done_again",
    "dask/dask#6445, Eventual-Inc/Daft#3576: a part of another":
        "sweep/test_store.py::test_a_foreign_shard_is_refused_before_training",
    "dask/distributed: no scheduler":
        "sweep/test_cluster.py::test_no_scheduler_and_no_dask_are_said_in_words",
    "pykeen/pykeen#677, #1339: inverse triples":
        "database/test_pykeen.py::test_a_factory_like_one_with_inverse_triples_has_them",
}  # fmt: skip


@pytest.mark.parametrize("case", ELSEWHERE)
def test_a_case_has_its_test(case: str) -> None:
    file, name = ELSEWHERE[case].split("::")
    tree = ast.parse((ROOT / "tests" / file).read_text())
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


# tables


@pytest.mark.parametrize("index", [False, True])
def test_categories_and_a_named_index_are_columns(index: bool, tmp_path: Path) -> None:
    # apache/arrow#1688, dask/dask#2222; pandas.read_parquet has the same two rows
    frame = pd.DataFrame({"head": ["a", "b"], "relation": ["p", "p"], "tail": ["x", "y"]})
    frame = frame.astype("category")
    (frame.set_index("head") if index else frame).to_parquet(tmp_path / "a.parquet")
    found = load(tmp_path / "a.parquet", columns=["head", "relation", "tail"])
    assert found == Database.from_triples([("a", "p", "x"), ("b", "p", "y")])


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
