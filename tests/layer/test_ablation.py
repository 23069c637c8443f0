"""Ablated layers and edits of activations, held against sums over heads that are written out."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from capacity.database import Database, random_database
from capacity.errors import CapacityError
from capacity.evaluator import evaluate, fact_table
from capacity.layer import (
    AttentionLayer,
    LayerConfig,
    ablate,
    layer_tensor,
    store_in_query_key,
)
from capacity.testing import layers
from tests.oracles import figure_1


def sentences(layer: AttentionLayer, n: int = 3) -> Tensor:
    rng = torch.Generator().manual_seed(0)
    return torch.randint(layer.d_vocab, (4, n), generator=rng)


@given(layers(5), st.data())
def test_ablated_heads_write_nothing(layer: AttentionLayer, data: st.DataObject) -> None:
    heads = data.draw(st.sets(st.integers(0, layer.config.n_heads - 1), min_size=1))
    n = 2 if layer.config.n_positions == 2 else min(3, layer.config.n_positions or 3)
    tokens, before = sentences(layer, n), layer.state_dict()
    kept = {name: tensor.clone() for name, tensor in before.items()}
    without = ablate(layer, heads)

    def silent(z: Tensor) -> Tensor:
        z[:, sorted(heads)] = 0
        return z

    # to zero what the heads hand to W_O is to zero their rows of W_O
    torch.testing.assert_close(without(tokens), layer(tokens, edits={"z": silent}))
    assert without.config == layer.config
    assert all(torch.equal(before[name], kept[name]) for name in kept)


def test_the_tensor_of_an_ablated_layer_lacks_the_terms_of_the_head() -> None:
    db = figure_1()
    layer = AttentionLayer(LayerConfig(4, 2), db.n_tokens, seed=0).double()
    whole, without = layer_tensor(layer, db), layer_tensor(ablate(layer, 1), db)
    # L is E and a sum over heads, and the sum for head 0 is what is left of it
    alone = layer_tensor(ablate(layer, [0, 1]), db)
    other = layer_tensor(ablate(layer, 0), db)
    torch.testing.assert_close(whole.L - without.L, other.L - alone.L)
    torch.testing.assert_close(alone.L, whole.E.expand_as(whole.L))


def test_the_table_of_facts_tells_what_a_head_holds() -> None:
    db = Database.from_triples([("a", "p", "x"), ("b", "p", "y")])
    layer = store_in_query_key(db, 0.95)
    assert fact_table(layer, db)["p95"].all()
    # without its only head the layer answers by the predicate alone, the same for both subjects,
    # so that at most one of two facts is right
    table = fact_table(ablate(layer, 0), db)
    assert table["argmax"].sum() <= 1
    assert table["said"].nunique() == 1


@pytest.mark.parametrize("bias", [False, True])
def test_heads_that_write_their_mean_write_it_everywhere(bias: bool) -> None:
    db = figure_1()
    layer = AttentionLayer(LayerConfig(6, 3, 2, 2, bias=bias), db.n_tokens, seed=0).double()
    pairs = torch.tensor(sorted(set(map(tuple, db.token_triples[:, :2].tolist()))))
    cache = layer.capture(pairs)
    # sum over the heads 0 and 2 of z W_O at the predicate, averaged over the pairs
    mean = sum(cache.layers[0].z[:, h, 1] @ layer.W_O[h] for h in (0, 2)).mean(dim=0)  # type: ignore[union-attr]
    residual = ablate(layer, [0, 2]).double()
    held = ablate(layer, [0, 2], mean_over=db)
    tokens = sentences(layer, 2)
    expected = residual(tokens) + mean @ layer.W_U
    torch.testing.assert_close(held(tokens), expected)
    torch.testing.assert_close(ablate(layer, [0, 2], mean_over=pairs)(tokens), expected)
    assert held.config.bias
    # a table of its facts, and no tensor, for L is of plain layers
    assert len(fact_table(held, db)) == db.n_triples
    with pytest.raises(CapacityError, match="without norm, bias and positions"):
        layer_tensor(held, db)


def test_a_head_is_patched_from_one_sentence_into_another() -> None:
    layer = AttentionLayer(LayerConfig(4, 2), 6, seed=0).double()
    one, other = torch.tensor([[0, 2]]), torch.tensor([[1, 2]])
    z = layer.capture(one).layers[0].z
    # with what all heads read in the first sentence the second has its logits, since the last
    # token is the same
    patched = layer(other, edits={"z": lambda _: z})
    torch.testing.assert_close(patched[:, -1], layer(one)[:, -1])
    # and by linearity with that of one head it has that of one head
    half = layer(other, edits={"z": lambda mine: torch.stack([z[:, 0], mine[:, 1]], dim=1)})
    term = (z[:, 0] - layer.capture(other).layers[0].z[:, 0]) @ layer.W_O[0] @ layer.W_U
    torch.testing.assert_close(half, layer(other) + term)


EVERY = ("embedding", "q", "k", "v", "pattern", "z", "residual", "logits")


@given(layers(5))
def test_edits_that_change_nothing_change_nothing_and_come_in_order(layer: AttentionLayer) -> None:
    seen: list[str] = []

    def looking(name: str) -> Callable[[Tensor], Tensor]:
        def look(x: Tensor) -> Tensor:
            seen.append(name)
            return x

        return look

    tokens = sentences(layer, 2)
    edits = {name: looking(name) for name in EVERY}
    torch.testing.assert_close(layer(tokens, edits=edits), layer(tokens))
    assert seen == list(EVERY)
    cache = layer.capture(tokens, edits={name: looking(name) for name in EVERY[:6]})
    torch.testing.assert_close(cache.layers[0].z, layer.capture(tokens).layers[0].z)


def test_a_capture_has_what_follows_from_an_edit() -> None:
    layer = AttentionLayer(LayerConfig(4, 2), 6, seed=0)
    tokens = sentences(layer)
    uniform = torch.ones(3, 3).tril()
    uniform = uniform / uniform.sum(dim=1, keepdim=True)
    cache = layer.capture(tokens, edits={"pattern": lambda pattern: uniform.expand_as(pattern)})
    heads = cache.layers[0]
    assert torch.equal(heads.pattern[0, 0], uniform)
    # the mean of the values so far
    counts = torch.arange(1, 4)[:, None]
    torch.testing.assert_close(heads.z, heads.v.cumsum(dim=2) / counts)


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ({"patern": abs}, r"must be one of embedding, .*Did you mean `pattern`\?"),
        ({"z": 3}, "must be functions by the names"),
        ([("z", abs)], "must be functions by the names"),
        ({"z": lambda _: None}, "must return a tensor; it returned None"),
        ({"z": lambda z: z[:, :1]}, r"of the shape \(4, 2, 3, 2\).* of the shape \(4, 1, 3, 2\)"),
        ({"z": lambda z: z.double()}, "torch.float32 .*torch.float64"),
    ],
)
def test_wrong_edits_are_refused(edits: Any, said: str) -> None:
    layer = AttentionLayer(LayerConfig(4, 2), 6, seed=0)
    for call in (layer, layer.capture):
        with pytest.raises(CapacityError, match=said):
            call(sentences(layer), edits=edits)
    with pytest.raises(CapacityError, match="must be one of embedding, q, k, v, pattern, z; got"):
        layer.capture(sentences(layer), edits={"logits": abs})


@pytest.mark.parametrize(
    ("heads", "said"),
    [(2, "`heads` must be at most 1; got 2"), (-1, "at least 0"), ([], "at least one head"),
     ("0", "`heads` must be an integer"), ([0, True], "`heads` must be an integer")],
)  # fmt: skip
def test_heads_that_there_are_not_are_refused(heads: Any, said: str) -> None:
    layer = AttentionLayer(LayerConfig(4, 2), 6, seed=0)
    with pytest.raises(CapacityError, match=said):
        ablate(layer, heads)
    with pytest.raises(CapacityError, match="must be an AttentionLayer"):
        ablate(random_database(0), heads)  # type: ignore[arg-type]


def test_an_ablated_layer_is_evaluated_as_any_other() -> None:
    db = figure_1()
    layer = AttentionLayer(LayerConfig(4, 2), db.n_tokens, seed=0)
    without = ablate(layer, 0)
    assert evaluate(without, db).argmax == pytest.approx(fact_table(without, db)["argmax"].mean())
