"""Layers on facts of any number of tokens: L of any order, its rank, training and scores."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database, random_database
from capacity.errors import InvalidArgumentError, MemoryBudgetError
from capacity.evaluator import evaluate, memorises
from capacity.layer import (
    AttentionLayer,
    Compute,
    Decoder,
    DecoderConfig,
    LayerConfig,
    Recipe,
    layer_rank_upper,
    layer_tensor,
    train,
    train_many,
)
from capacity.layer.model import tensor
from capacity.rank import matrix_rank
from capacity.testing import layers
from tests.tiers import examples


@st.composite
def functional(draw: st.DrawFn, *, least: int = 2) -> Database:
    """Databases of arity 2 to 5, with tokens that come several times in one fact."""
    arity = draw(st.integers(least, 5))
    names = st.sampled_from("abcd")
    keys = draw(st.lists(st.tuples(*[names] * (arity - 1)), min_size=1, max_size=9, unique=True))
    return Database.from_tuples([(*key, draw(names)) for key in keys])


def logits_at_objects(layer: AttentionLayer, db: Database) -> torch.Tensor:
    objects = torch.as_tensor(db.object_ids.astype(np.int64))
    return layer(torch.as_tensor(db.token_tuples[:, :-1].astype(np.int64)))[:, -1, objects]


@given(st.data())
@settings(max_examples=examples(80), deadline=None)
def test_fibers_of_any_order_are_the_logits_of_the_forward_pass(data: st.DataObject) -> None:
    db = data.draw(functional())
    layer = data.draw(layers(db.n_tokens))
    parts = layer_tensor(layer, db)
    assert parts.L.shape == db.shape == parts.E.shape
    at = tuple(torch.as_tensor(db.tuples[:, :-1].astype(np.int64).T))
    # Proposition 3.1 for sentences of any length, tokens that repeat included
    torch.testing.assert_close(parts.L[at], logits_at_objects(layer, db), rtol=1e-9, atol=1e-9)


@given(st.data())
@settings(max_examples=examples(40), deadline=None)
def test_l_is_the_sum_of_its_parts_entry_by_entry(data: st.DataObject) -> None:
    db = data.draw(functional())
    layer = data.draw(layers(db.n_tokens))
    t = layer_tensor(layer, db)
    domain = {tuple(row) for row in db.tuples[:, :-1].tolist()}
    W_EU, W_QK, W_VO = (W.detach() for W in (layer.W_EU, layer.W_QK, layer.W_VO))
    for key in product(*map(range, db.shape[:-1])):
        ids = [int(of[i]) for of, i in zip(db.role_ids, key, strict=False)]
        for j, v in enumerate(db.object_ids.tolist()):
            found = W_EU[ids[-1], v]
            assert t.E[(*key, j)] == found
            for h in range(len(W_QK)):
                # the definition: softmax over the positions of the sentence
                scores = torch.stack([W_QK[h, ids[-1], x] for x in ids]).softmax(0)
                heads = sum(a * W_VO[h, x, v] for a, x in zip(scores, ids, strict=True))
                found = found + (heads if key in domain else 0)
            torch.testing.assert_close(t.L[(*key, j)], found, rtol=1e-9, atol=1e-9)
    if db.arity > 2:
        assert t.V.shape == (len(W_QK), len(t.keys), *db.shape[1:])
        # the same for all tokens of the other columns
        values = t.V.flatten(2, -2)
        assert torch.equal(values, values[:, :, :1].expand_as(values))
        again = t.E + torch.einsum("h...t,htv->...v", t.A, values[:, :, 0])
        torch.testing.assert_close(again, t.L)


@given(st.data())
@settings(max_examples=examples(60), deadline=None)
def test_no_unfolding_of_l_has_a_rank_above_the_bound(data: st.DataObject) -> None:
    db = data.draw(functional())
    # in integers, whose ranks are exact: gates of one half, as W_Q = 0 makes them
    config = data.draw(layers(db.n_tokens)).config
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    layer = AttentionLayer(config, db.n_tokens, dtype=torch.float64)
    with torch.no_grad():
        for p in layer.parameters():
            p.copy_(torch.as_tensor(rng.integers(-2, 3, p.shape)))
        layer.W_Q.zero_()
    # attention is 1 / (number of tokens), so that this multiple of L is whole
    L = (layer_tensor(layer, db).L * (db.arity - 1)).round().detach().numpy().astype(np.int64)
    bound = layer_rank_upper(config, db.shape)
    for mode in range(db.arity):
        assert matrix_rank(np.moveaxis(L, mode, 0).reshape(L.shape[mode], -1)) <= bound


def test_the_bound_of_any_arity_is_that_of_triples_at_arity_3() -> None:
    # the formula for triples, as Proposition 3.5's docstring has it
    for d, h, vo, k, q, v in product((1, 2, 5), (1, 3), (1, 2), (1, 4, 9), (1, 3, 8), (1, 6)):
        config = LayerConfig(d, h, 1, min(vo, d))
        heads = min(h * config.d_head_vo, d, k, v)
        expected = min(
            min(d, q, v) + q * heads, q * min(k, v, d), k * min(q, v, d), min(d, v) * min(k, q)
        )
        assert layer_rank_upper(config, (k, q, v)) == expected


def parity(n: int) -> Database:
    """Facts of n tokens: the sum modulo 3 of n - 1 digits, with tokens for each column."""
    return Database.from_tuples(
        [
            (*(f"{place}:{digit}" for place, digit in enumerate(key)), f"={sum(key) % 3}")
            for key in product(range(3), repeat=n - 1)
        ][::2]
    )


@pytest.mark.parametrize("n", [2, 4])
def test_facts_of_n_tokens_are_memorised_and_scored(n: int) -> None:
    db = parity(n)
    layer = AttentionLayer(LayerConfig(6, 4, 2, 4), db.n_tokens, seed=1)
    recipe = Recipe(learning_rate=0.03, beta2=0.9, schedule="cosine", epochs=700)
    training = train(layer, db, recipe)
    assert (training.engine, training.status) == ("reference", "memorised")
    assert evaluate(layer, db).softmax[0.95] == 1
    assert memorises(layer, db, "argmax")
    right = logits_at_objects(layer, db).argmax(dim=1).numpy() == db.tuples[:, -1]
    assert right.all()


def test_the_first_gradient_is_that_of_the_definition() -> None:
    db = parity(4)
    recipe = Recipe(epochs=1, learning_rate=1e-3, stop_tau=0)
    layer, same = (
        AttentionLayer(LayerConfig(3, 2, 2, 2), db.n_tokens, dtype=torch.float64) for _ in range(2)
    )
    train(layer, db, recipe)
    sentences = torch.as_tensor(db.token_tuples.astype(np.int64))
    log_p = same(sentences[:, :3]).log_softmax(dim=-1)
    # the mean over facts and over the tokens 2, 3 and 4
    loss = -log_p.gather(2, sentences[:, 1:, None]).mean()
    loss.backward()
    for after, before in zip(layer.parameters(), same.parameters(), strict=True):
        assert before.grad is not None
        # Adam's first step is the sign of the gradient, but for 1e-8
        moved = before.detach() - 1e-3 * before.grad / (before.grad.abs() + 1e-8)
        torch.testing.assert_close(after.detach(), moved, rtol=0, atol=1e-9)


def test_starts_and_decoders_take_any_arity() -> None:
    db = parity(4)
    recipe = Recipe(learning_rate=0.03, epochs=10)
    tasks: list[Any] = [(AttentionLayer(LayerConfig(4, 2, 2, 2), db.n_tokens), db)]
    (run,) = train_many(tasks, recipe, starts=3, held_at="argmax")
    assert run.starts is not None
    assert run.starts.tried == 3
    decoder = Decoder(DecoderConfig(4, n_heads=2, mlp=8), db.n_tokens)
    assert train(decoder, db, recipe).engine == "reference"
    assert 0 < evaluate(decoder, db).argmax <= 1


@pytest.mark.parametrize("engine", ["fused", "tape", "blocked"])
def test_engines_of_triples_refuse_facts_of_four_tokens(engine: str) -> None:
    db = parity(4)
    layer = AttentionLayer(LayerConfig(2, 1, 1, 1), db.n_tokens)
    message = f"{engine} can't train .*arity 3, and these have 4. Use auto or reference"
    with pytest.raises(InvalidArgumentError, match=message):
        train(layer, db, compute=Compute(engine))


def test_triples_still_go_to_the_fastest_engine_and_to_the_same_weights() -> None:
    db = random_database(1, triples=(20, 40))
    layers_ = [AttentionLayer(LayerConfig(4, 2, 2, 2), db.n_tokens) for _ in range(2)]
    recipe = Recipe(epochs=3)
    assert train(layers_[0], db, recipe).engine == "fused"
    # facts of three columns are triples, however they were made
    same = Database.from_tuples([tuple(fact) for fact in db])
    assert train(layers_[1], same, recipe).engine == "fused"
    assert torch.equal(layers_[0].W_E, layers_[1].W_E)


def test_attention_over_too_many_keys_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    db = parity(4)
    layer = AttentionLayer(LayerConfig(2, 1, 1, 1), db.n_tokens)
    # one head, 27 keys, 9 tokens in them, 4 bytes
    monkeypatch.setattr(tensor, "BUDGET", 27 * 9 * 4 - 1)
    with pytest.raises(MemoryBudgetError, match="it takes 972"):
        layer_tensor(layer, db)
