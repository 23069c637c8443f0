"""The tensor of logits: L for a plain layer, the forward pass for any decoder."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from capacity.database import Database, random_database
from capacity.errors import InvalidArgumentError
from capacity.evaluator import decoded_facts, logit_blocks, logit_tensor
from capacity.layer import AttentionLayer, Decoder, DecoderConfig, LayerConfig, Recipe, train
from capacity.layer.model.tensor import whole_layer_tensor

DB = random_database(3)


def test_it_is_l_on_the_whole_grid() -> None:
    layer = AttentionLayer(LayerConfig(4, 2), DB.n_tokens, dtype=torch.float64)
    k, q, v = (ids.astype(np.int64) for ids in (DB.subject_ids, DB.predicate_ids, DB.object_ids))
    L = whole_layer_tensor(layer).detach().numpy()[np.ix_(k, q, v)]
    np.testing.assert_allclose(logit_tensor(layer, DB), L, atol=1e-12)


@pytest.mark.parametrize("pairs", [1, 17, 10_000])
def test_blocks_are_the_forward_pass_of_a_decoder(pairs: int) -> None:
    decoder = Decoder(DecoderConfig(4, 2, n_layers=2, mlp=8, norm="layer"), DB.n_tokens)
    tensor = np.full(DB.shape, np.nan)
    for subjects, block in logit_blocks(decoder, DB, pairs=pairs):
        tensor[subjects] = block
    np.testing.assert_allclose(tensor, logit_tensor(decoder, DB), atol=1e-6)
    k, q, _ = DB.triples[7]
    pair = torch.tensor([[int(DB.subject_ids[k]), int(DB.predicate_ids[q])]])
    logits = decoder(pair)[0, -1].detach().numpy()
    np.testing.assert_allclose(tensor[k, q], logits[DB.object_ids.astype(np.int64)], atol=1e-6)


def test_a_decoder_that_memorises_says_its_facts() -> None:
    db = Database.from_triples([("a", "p", "x"), ("b", "p", "y"), ("a", "q", "y")])
    decoder = Decoder(DecoderConfig(4, mlp=8), db.n_tokens)
    assert train(decoder, db, Recipe(learning_rate=0.02)).status == "memorised"
    found = logit_tensor(decoder, db).argmax(axis=2)
    k, q, v = db.triples.T
    assert (found[k, q] == v).all()
    said = decoded_facts(decoder, db)
    assert said is not None
    assert {*db} <= {*said}


def test_wrong_arguments() -> None:
    layer = AttentionLayer(LayerConfig(4, 2), 5)
    with pytest.raises(InvalidArgumentError, match="d_vocab is 5"):
        logit_tensor(layer, DB)
    with pytest.raises(InvalidArgumentError, match="`pairs`"):
        list(logit_blocks(AttentionLayer(LayerConfig(4, 2), DB.n_tokens), DB, pairs=0))
