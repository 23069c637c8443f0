"""Activations of a decoder: patterns, and terms that sum to its last embeddings."""

from __future__ import annotations

import pytest
import torch

from capacity.errors import InvalidArgumentError
from capacity.layer import AttentionLayer, Decoder, DecoderConfig, LayerConfig
from capacity.transformer import decompose, effective_attention, identifiability_table
from tests.layer.decoder.test_decoder import COMBINATIONS, drawn

TOKENS = torch.tensor([[0, 1, 2, 6], [3, 3, 5, 0]])


def made(name: str) -> Decoder:
    config = DecoderConfig(**COMBINATIONS[name])
    return Decoder.of_weights(config, {n: w.detach() for n, w in drawn(config, 7).items()})


@pytest.mark.parametrize("name", [name for name in COMBINATIONS if name != "mlp alone"])
def test_terms_sum_to_what_the_logits_are_read_from(name: str) -> None:
    decoder = made(name)
    cache = decoder.capture(TOKENS)
    config = decoder.config
    assert len(cache.layers) == sum(config.attention_of_layers)
    stream = cache.start
    for step in cache.steps:
        stream = step.applied_to(stream)
    W_U = decoder.W_E.T if config.tie_embeddings else decoder.get_parameter("W_U")
    logits = stream @ W_U + (decoder.get_parameter("b_U") if config.bias else 0)
    torch.testing.assert_close(logits, decoder(TOKENS), rtol=1e-11, atol=1e-11)
    split = decompose(cache)
    torch.testing.assert_close(split.embeddings[-1], stream, rtol=1e-10, atol=1e-10)


def test_analyses_of_attention_take_it() -> None:
    cache = made("rms, mlp").capture(TOKENS)
    layer = cache.layers[0]
    torch.testing.assert_close(layer.pattern.sum(-1), torch.ones(2, 2, 4, dtype=torch.float64))
    assert effective_attention(cache) is not None
    assert len(identifiability_table(cache))


def test_it_is_what_is_captured_of_the_layer_that_it_was_converted_from() -> None:
    config = LayerConfig(4, 2, layer_norm=True, bias=True)
    layer = AttentionLayer(config, 7, seed=1)
    names = config.names_in_decoder()
    decoder = Decoder.of_weights(
        config.as_decoder(), {names[n]: p for n, p in layer.named_parameters()}
    )
    ours, theirs = decoder.capture(TOKENS), layer.capture(TOKENS)
    torch.testing.assert_close(ours.layers[0].pattern, theirs.layers[0].pattern)
    torch.testing.assert_close(decompose(ours).terms, decompose(theirs).terms)


def test_padding_comes_last_and_tokens_are_known() -> None:
    decoder = made("mlp")
    mask = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1]])
    whole, alone = decoder.capture(TOKENS, mask), decoder.capture(TOKENS[:1, :2])
    torch.testing.assert_close(whole.layers[0].pattern[:1, :, :2, :2], alone.layers[0].pattern)
    with pytest.raises(InvalidArgumentError):
        decoder.capture(torch.tensor([[9]]))
