"""The strategies promise what their users rely on."""

import numpy as np
import pytest
from hypothesis import find, given
from hypothesis import strategies as st

from capacity.database import Database
from capacity.layer import AttentionLayer, LayerConfig
from capacity.testing import (
    KnownRank,
    databases,
    layer_configs,
    layers,
    rdf_databases,
    tensors_of_known_rank,
)


@given(databases(functional=True), databases(functional=False))
def test_functional_and_multi_valued_databases_are_what_they_say(a: Database, b: Database) -> None:
    assert a.is_functional
    assert not b.is_functional


@given(databases(max_subjects=2, max_predicates=3, max_objects=4, max_triples=5))
def test_sizes_are_respected(db: Database) -> None:
    assert all(n <= most for n, most in zip(db.shape, (2, 3, 4), strict=True))
    assert db.n_triples <= 5


def test_tokens_may_have_two_roles_and_cells_may_be_missing() -> None:
    find(databases(functional=True), lambda db: bool(set(db.subject_ids) & set(db.object_ids)))
    find(databases(), lambda db: db.n_pairs < db.shape[0] * db.shape[1])
    with pytest.raises(ValueError, match="at least 2"):
        find(databases(functional=False, max_objects=1), lambda _: True)


@given(layer_configs())
def test_layers_are_the_papers(config: LayerConfig) -> None:
    assert 1 <= config.d_head_qk <= config.d_model <= 6
    assert 1 <= config.d_head_vo <= config.d_model
    assert 1 <= config.n_heads <= 4
    assert config.is_plain


@given(st.data(), st.integers(1, 9))
def test_layers_have_the_tokens_asked_for(data: st.DataObject, d_vocab: int) -> None:
    layer = data.draw(layers(d_vocab))
    assert isinstance(layer, AttentionLayer)
    assert layer.W_E.shape[0] == d_vocab


@given(tensors_of_known_rank())
def test_known_rank_tensors_are_the_sum_of_their_terms(known: KnownRank) -> None:
    a, b, c = known.factors
    assert np.array_equal(np.einsum("ir,jr,kr->ijk", a, b, c), known.tensor)


def test_known_rank_tensors_reach_every_mode() -> None:
    for mode in range(3):
        find(
            tensors_of_known_rank(),
            lambda k, mode=mode: k.rank > k.tensor.shape[mode],
        )


@given(rdf_databases())
def test_rdf_databases_hold_no_labels(db: Database) -> None:
    assert {t.kind for t in db.tokens} <= {"iri", "literal"}
