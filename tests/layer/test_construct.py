from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database, random_database
from capacity.errors import MultiValuedError
from capacity.evaluator import evaluate, memorises, pair_logits
from capacity.layer import (
    AttentionLayer,
    layer_rank_assumed,
    layer_rank_upper,
    store_in_query_key,
    store_in_value_output,
)
from capacity.layer.model.tensor import layer_tensor
from capacity.rank import database_bounds
from capacity.testing import databases
from tests.oracles import figure_1
from tests.tiers import examples

WRITERS = [store_in_query_key, store_in_value_output]
Writer = Callable[..., AttentionLayer]


@st.composite
def facts_of_few_tokens(draw: st.DrawFn) -> Database:
    """Any token in any role, (x, x, v) among the facts."""
    tokens = st.sampled_from("abcdef")
    facts = draw(st.dictionaries(st.tuples(tokens, tokens), tokens, min_size=1, max_size=20))
    return Database.from_triples([(k, q, v) for (k, q), v in facts.items()])


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(
    db=st.one_of(databases(functional=True),
                 facts_of_few_tokens()),
    tau=st.sampled_from([0.51, 0.75, 0.99, 0.99999]),
)  # fmt: skip
@settings(max_examples=examples(40))
def test_every_functional_database_is_memorised_at_any_tau(
    write: Writer, dtype: torch.dtype, db: Database, tau: float
) -> None:
    layer = write(db, tau, dtype=dtype)
    assert layer.W_E.dtype == dtype
    assert memorises(layer, db, tau)


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("seed", range(4))
def test_databases_of_the_papers_kind_are_memorised_in_float32(write: Writer, seed: int) -> None:
    # half of them are chained: no, objects become subjects, but no subject is a predicate
    db = random_database(seed, triples=(100, 200))
    layer = write(db, 0.99, dtype=torch.float32)
    assert evaluate(layer, db).softmax[0.99] == 1.0


def test_the_sizes_are_those_that_the_proofs_give() -> None:
    apart = figure_1()
    n = len(apart.predicate_ids)
    assert store_in_query_key(apart).config.name == f"d{n + 1}-h1-qk{n}-vo1"
    assert store_in_value_output(apart).config.name == f"d{n + 3}-h{n}-qk1-vo1"
    # b is asked about, and asks
    mixed = Database.from_triples([("a", "b", "x"), ("b", "c", "y"), ("b", "b", "x")])
    assert store_in_query_key(mixed).config.name == "d6-h2-qk2-vo1"
    assert store_in_value_output(mixed).config.name == "d5-h4-qk1-vo1"


def test_one_head_of_low_rank_memorises_a_database_of_high_rank() -> None:
    # 150 facts with 150 objects: every object slice of D has a fact, so that rank(D) >= 150
    db = Database.from_triples((f"k{i // 3}", f"q{i % 3}", f"v{i}") for i in range(150))
    assert max(database_bounds(db).unfoldings) == 150
    layer = store_in_query_key(db, 0.9999, dtype=torch.float32)
    # equation (9) says 5, and (10) asks for 150
    assert layer_rank_assumed(layer.config) == 5
    assert memorises(layer, db, 0.9999)
    t = layer_tensor(store_in_query_key(db, 0.9999), db)
    # L = (a vector, for all k and q) + attention x (another vector): |Q| + 1 terms at most
    flat = t.L.detach().numpy().reshape(-1, 150)
    assert np.linalg.matrix_rank(flat) == 2
    attention = t.A[0].detach().numpy()[:, :, :-3].sum(axis=2)
    assert np.linalg.matrix_rank(attention) <= 3
    assert layer_rank_upper(layer.config, db.shape) >= 4


def test_each_head_holds_the_facts_of_its_predicate() -> None:
    db = random_database(7, triples=(60, 120))
    layer = store_in_value_output(db)
    with torch.no_grad():
        layer.W_V[0].zero_()
    right = pair_logits(layer, db.token_triples[:, :2]).argmax(axis=1) == db.token_triples[:, 2]
    of_first = db.triples[:, 1] == 0
    # those facts all read as the lowest object now, and the others are as they were
    assert right[~of_first].all()
    assert np.array_equal(right[of_first], db.triples[of_first, 2] == 0)


@pytest.mark.parametrize("write", WRITERS)
def test_a_precision_that_cannot_hold_the_facts_is_refused(write: Writer) -> None:
    db = Database.from_triples((f"k{i // 20}", f"q{i % 20}", f"v{i}") for i in range(3000))
    with pytest.raises(ValueError, match=r"must distinguish 3,000 objects; torch.float32 can't"):
        write(db, dtype=torch.float32)
    assert memorises(write(db), db, 0.99)


@pytest.mark.parametrize("write", WRITERS)
def test_what_cannot_be_written_is_refused(write: Writer) -> None:
    with pytest.raises(MultiValuedError):
        write(Database.from_triples([("a", "p", "x"), ("a", "p", "y")], multi="keep"))
    with pytest.raises(ValueError, match=r"strictly between 0.5 and 1; got 1\.0"):
        write(figure_1(), 1.0)
