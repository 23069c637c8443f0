"""The strategies promise what their users rely on."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from capacity.database import Database
from capacity.errors import CertificateError, InvalidArgumentError
from capacity.layer import AttentionLayer, LayerConfig
from capacity.rank import (
    Certificate,
    RankAnalysis,
    database_bounds,
    effective_rank_interval,
    rank_interval,
    verify,
)
from capacity.tensor import KnownTensor, SparseTensor, from_dense
from capacity.testing import (
    KnownDatabase,
    KnownEffectiveRank,
    KnownRank,
    certificates,
    databases,
    databases_of_known_effective_rank,
    databases_of_known_rank,
    hard_databases,
    integer_tensors,
    integer_tensors_of_known_rank,
    layer_configs,
    layers,
    mutations,
    rdf_databases,
    tensors_of_known_rank,
)
from capacity.testing.arguments.combined import KINDS, drawn_certificate
from capacity.testing.choices import Choices
from capacity.testing.drawn import hard_database
from capacity.testing.known_databases import known_rank
from tests.oracles import database, figure_1
from tests.tiers import examples

# ---- databases ----------------------------------------------------------------------------------


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
    with pytest.raises(InvalidArgumentError, match="at least 2"):
        find(databases(functional=False, max_objects=1), lambda _: True)


@given(rdf_databases())
def test_rdf_databases_hold_no_labels(db: Database) -> None:
    assert {t.kind for t in db.tokens} <= {"iri", "literal"}


@pytest.mark.slow
def test_unfoldings_alone_seldom_close_hard_databases() -> None:
    # of 300 draws of `databases` 255 are closed, 193 of them by an unfolding
    closed = by_unfolding = 0
    for seed in range(300):
        db = hard_database(Choices.seeded(seed))
        interval = rank_interval(db)
        closed += interval.closed
        by_unfolding += max(database_bounds(db).unfoldings) == interval.upper
    print(f"of 300 hard databases {closed} are closed, {by_unfolding} by an unfolding alone")
    assert 5 <= by_unfolding < closed < 100
    assert by_unfolding < 50


@pytest.mark.slow
def test_hard_databases_are_functional_or_not() -> None:
    find(hard_databases(), lambda db: db.is_functional)
    find(hard_databases(), lambda db: not db.is_functional)


# ---- known ranks --------------------------------------------------------------------------------


@given(databases_of_known_rank())
@settings(max_examples=examples(150))
def test_known_ranks_lie_in_the_certified_interval(known: KnownDatabase) -> None:
    analysis = RankAnalysis(known.database)
    assert known.rank in analysis.rank
    if known.effective_rank is not None:
        assert known.effective_rank in analysis.effective_rank


@given(databases_of_known_effective_rank())
@settings(max_examples=examples(150))
def test_known_effective_ranks_lie_in_the_certified_interval(known: KnownEffectiveRank) -> None:
    assert known.effective_rank in effective_rank_interval(known.database)
    assert known.rank is None or known.rank in rank_interval(known.database)


@pytest.mark.slow
def test_known_databases_are_of_many_kinds() -> None:
    def components(known: KnownDatabase) -> int:
        return len(set(known.why.split("; ")))

    find(databases_of_known_rank(), lambda known: components(known) >= 3)
    for word in ("Jaja 1979", "Strassen 1969", "R[x]/(x^3 - 1)", "R[x]/(x^2)", "polynomials"):
        find(databases_of_known_rank(), lambda known, word=word: word in known.why)
    # neither closed by what the library finds, nor by an unfolding: but the rank is known
    find(databases_of_known_rank(), lambda known: not rank_interval(known.database).closed)
    find(databases_of_known_effective_rank(), lambda known: known.rank is None)
    find(
        databases_of_known_effective_rank(),
        lambda known: known.rank is not None and known.rank > known.effective_rank,
    )


@given(tensors_of_known_rank())
def test_known_rank_tensors_are_the_sum_of_their_terms(known: KnownRank) -> None:
    a, b, c = known.factors
    assert np.array_equal(np.einsum("ir,jr,kr->ijk", a, b, c), known.tensor)


@pytest.mark.slow
def test_known_rank_tensors_reach_every_mode() -> None:
    for mode in range(3):
        find(
            tensors_of_known_rank(),
            lambda k, mode=mode: k.rank > k.tensor.shape[mode],
        )


# ---- tensors of any order -----------------------------------------------------------------------


@given(integer_tensors(min_order=2, max_order=4, max_side=3, max_value=5, max_entries=6))
def test_sizes_of_integer_tensors_are_respected(tensor: SparseTensor) -> None:
    assert 2 <= tensor.order <= 4
    assert max(tensor.shape) <= 3
    assert tensor.largest <= 5
    assert tensor.n_entries <= 6


@pytest.mark.slow
def test_integer_tensors_may_be_zero_negative_and_have_zero_slices() -> None:
    find(integer_tensors(), lambda tensor: tensor.n_entries == 0)
    find(integer_tensors(), lambda tensor: tensor.n_entries > 0 and tensor.values.max() < 0)
    find(integer_tensors(), lambda tensor: len(set(tensor.indices[:, 0])) < tensor.shape[0])


@pytest.mark.slow
@given(integer_tensors_of_known_rank())
@settings(max_examples=examples(150))
def test_known_ranks_of_tensors_lie_in_the_certified_interval(known: KnownTensor) -> None:
    assert known.lower in rank_interval(known.tensor)


@given(integer_tensors_of_known_rank(max_order=4, max_rank=8))
def test_limits_of_tensors_of_known_rank_are_respected(known: KnownTensor) -> None:
    assert known.tensor.order <= 4
    assert known.rank is not None
    assert known.rank <= 8


@pytest.mark.slow
def test_tensors_of_known_rank_are_of_many_kinds() -> None:
    for words in ("quaternions", "Jaja, Takche 1986", "substitution", "Derksen 2016"):
        find(
            integer_tensors_of_known_rank(),
            lambda known, words=words: words in known.name + known.source,
        )
    find(integer_tensors_of_known_rank(), lambda known: known.tensor.order == 6)
    find(integer_tensors_of_known_rank(), lambda known: known.tensor.largest > 10)


# ---- certificates -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("order", [2, 3, 4])
def test_every_kind_is_drawn_or_refused_in_words_for_every_order(order: int) -> None:
    dense = np.random.default_rng(order).integers(-2, 3, (2,) * order)
    for tensor in (from_dense(dense), from_dense(0 * dense)):
        for kind in sorted({*sum(KINDS.values(), ())}):
            for seed, quantity in enumerate(("rank", "effective_rank")):
                choose, said, one = Choices.seeded(seed), "", None
                try:
                    one = drawn_certificate(choose, tensor, kind=kind, quantity=quantity)
                except InvalidArgumentError as error:
                    said = str(error)
                assert f"No argument of kind {kind!r}" in said or (
                    one and verify(one, tensor).proved
                )


def test_a_kind_that_can_not_be_had_is_refused_in_words() -> None:
    db = figure_1()
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"kind": "boxes", "side": "lower"}, "can't rest on 'boxes'"),
        ({"kind": "koszul", "side": "upper"}, "can't rest on 'koszul'"),
        ({"kind": "other"}, "`kind` must be one of unfolding, "),
        ({"side": "middle"}, "`side` must be one of lower, upper"),
        ({"quantity": "border_rank"}, "`quantity` must be one of rank, effective_rank"),
    ]
    for options, reason in wrong:
        with pytest.raises(InvalidArgumentError, match=reason):
            drawn_certificate(Choices.seeded(0), db, **options)
    single = database([(0, 0, 0)])
    for kind in ("pencil", "diagonalization"):
        with pytest.raises(InvalidArgumentError, match="No argument of kind"):
            drawn_certificate(Choices.seeded(0), single, kind=kind, side="lower")
    # pairs of slices are a matrix's as little as a pencil is
    for kind in ("paired slices", "pencil"):
        with pytest.raises(InvalidArgumentError, match="No argument of kind"):
            find(certificates(from_dense(np.eye(2, dtype=int)), kind=kind), lambda _: True)
    large = database([(i, i, i) for i in range(100)])
    with pytest.raises(InvalidArgumentError, match=r"65,536 entries at most; got .*100, 100, 100"):
        find(certificates(large), lambda _: True)


@given(st.data(), databases())
@settings(max_examples=examples(300))
def test_mutations_are_json_and_leave_the_certificate_as_it_is(
    data: st.DataObject, db: Database
) -> None:
    certificate = data.draw(certificates(db))
    before = json.dumps(certificate.to_dict())
    edited = data.draw(mutations(certificate, others=[data.draw(certificates(db))]))
    assert json.loads(json.dumps(edited)) == edited
    # the certificate itself is left as it is
    assert json.dumps(certificate.to_dict()) == before


@pytest.mark.slow
def test_mutations_edit_all_that_a_certificate_holds() -> None:
    db = figure_1()
    game = drawn_certificate(Choices.seeded(0), db, kind="substitution", quantity="rank")
    other = drawn_certificate(Choices.seeded(1), db, kind="koszul", quantity="rank")
    before = game.to_dict()

    def refused(data: Any) -> bool:
        try:
            Certificate.from_dict(data)
        except CertificateError:
            return True
        return False

    for what in (
        lambda d: d.get("value") == before["value"] + 1,
        lambda d: d.get("quantity") == "effective_rank",
        lambda d: d.get("side") == "upper",
        lambda d: len(d["arguments"]) > len(before["arguments"]),
        lambda d: any(a.get("kind") == "koszul" for a in d["arguments"]),
        lambda d: any([] in (a.get("bases") or []) for a in d["arguments"]),
        lambda d: "multi" not in d,
        lambda d: d["arguments"] == [],
        refused,
    ):
        find(mutations(game, others=[other]), what)
    find(mutations(other), lambda d: any(a.get("prime") == 1 for a in d["arguments"]))
    near = drawn_certificate(Choices.seeded(2), db, kind="enclosure", quantity="rank")
    radius = next(a for a in near.to_dict()["arguments"] if a["kind"] == "enclosure")["radius"]
    find(mutations(near), lambda d: any(0 < a.get("radius", 0) < radius for a in d["arguments"]))


def test_a_seed_gives_the_same_again() -> None:
    for seed in range(20):
        a, b = (
            drawn_certificate(choose, known_rank(choose).database)
            for choose in (Choices.seeded(seed), Choices.seeded(seed))
        )
        assert a.to_dict() == b.to_dict()


# ---- layers -------------------------------------------------------------------------------------


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
