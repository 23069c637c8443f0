"""e = i + h + f + c in every family, what it says of heads and constants, and what it predicts."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from capacity.errors import InvalidArgumentError
from capacity.transformer import (
    capture,
    constant_rank_bound,
    decompose,
    feed_forward_moments,
    feed_forward_r2,
    head_importance,
    head_terms,
    output_head,
    partial_sum_accuracy,
    terms_by_layer,
)
from capacity.transformer.activations.records.cache import Normed, Written
from capacity.transformer.residual.additive_decomposition import CONSTANT, HEADS, TERMS
from capacity.transformer.residual.partial_sums import corrupted, subsets

Build = Callable[..., Any]
Sentences = dict[str, Tensor]


@pytest.mark.parametrize(("dtype", "slack"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_the_terms_sum_to_the_models_hidden_states(
    build: Build, family: str, sentences: Sentences, dtype: torch.dtype, slack: float
) -> None:
    model = build(family, dtype)
    split = decompose(capture(model, sentences))
    with torch.no_grad():
        states = model(**sentences, output_hidden_states=True).hidden_states
    real = sentences["attention_mask"].bool()
    assert len(split.embeddings) == len(states)
    # Llama's norm computes in float32 whatever its model does
    slack = max(slack, 1e-6) if family in ("Llama", "Mistral", "Qwen2") else slack
    for ours, theirs in zip(split.embeddings, states, strict=True):
        assert (ours - theirs)[real].abs().max() <= slack * theirs[real].abs().max()
    importance = split.importance()[:, :, real]
    assert (importance.sum(1) - 1).abs().max() <= 10 * slack


def test_heads_terms_sum_to_h(build: Build, family: str, sentences: Sentences) -> None:
    captured = capture(build(family), sentences)
    split, of_heads = decompose(captured), head_terms(captured)
    real = captured.mask
    h, e = split.terms[-1, HEADS], split.embeddings[-1]
    assert torch.allclose(of_heads.sum((0, 1))[real], h[real], atol=1e-6)
    direct = torch.einsum("bnd,lhbnd->lhbn", e, of_heads) / e.square().sum(-1)
    assert torch.allclose(head_importance(captured)[..., real], direct[..., real], atol=1e-12)


def test_a_heads_term_weighs_every_tokens_value(build: Build, sentences: Sentences) -> None:
    # equation (4) token by token: sum over t' of alpha x_t' W_V W_O, before the norms
    captured = capture(build("GPT2"), sentences)
    layer = captured.layers[-1]
    by_token = layer.v_unbiased @ layer.W_O
    weighed = torch.einsum("bhst,bhtd->hbsd", layer.pattern, by_token)
    last = captured.steps[-1]
    assert isinstance(last, Normed)
    real = captured.mask
    found = head_terms(captured)[-1]
    assert torch.allclose(found[:, real], (weighed * last.gain / last.scale)[:, real])


def bound_of(n_norms: int, bias_first: bool) -> int:
    return 2 * n_norms + bias_first


def test_the_rank_of_the_constants_meets_its_bound(build: Build) -> None:
    """Twenty sentences of nine tokens, so that tokens don't bound the rank."""
    tokens = torch.randint(3, 50, (20, 9), generator=torch.Generator().manual_seed(0))
    # wide enough to tell 2N from 2 Lambda: BERT has a norm of its embeddings
    captured = capture(build("Bert"), tokens)
    assert constant_rank_bound(captured) == [bound_of(n, False) for n in (1, 3, 5)]
    assert decompose(captured).constant_rank() == [2, 6, 10]
    # norms of GPT-2 are on its sublayers' inputs: one is on the stream, at its end
    captured = capture(build("GPT2"), tokens)
    assert constant_rank_bound(captured) == [0, 1, 3]
    assert decompose(captured).constant_rank() == [0, 1, 3]
    # ALBERT maps embeddings, with a bias, after their norm
    captured = capture(build("Albert"), tokens)
    assert constant_rank_bound(captured) == [bound_of(n, False) for n in (1, 3, 5, 7)]
    ranks = decompose(captured).constant_rank()
    assert all(rank <= bound for rank, bound in zip(ranks, [2, 6, 10, 14], strict=True))


def test_padding_has_no_part_in_the_rank_of_the_constants(build: Build) -> None:
    # two tokens span two dimensions, whatever stands at padding
    tokens = torch.randint(3, 50, (1, 9), generator=torch.Generator().manual_seed(0))
    mask = torch.tensor([[1] * 2 + [0] * 7])
    split = decompose(capture(build("Bert"), {"input_ids": tokens, "attention_mask": mask}))
    assert split.constant_rank() == [2, 2, 2]


def test_albert_s_map_of_embeddings_takes_its_bias_to_the_constants(build: Build) -> None:
    model = build("Albert")
    mapped = model.albert.encoder.embedding_hidden_mapping_in
    tokens = torch.tensor([[3, 4, 5]])
    before = decompose(capture(model, tokens)).terms[0]
    with torch.no_grad():
        mapped.bias.add_(1)
    after = decompose(capture(model, tokens)).terms[0]
    assert torch.allclose(after[CONSTANT] - before[CONSTANT], torch.ones(1, 3, 16).double())
    assert torch.equal(after[:CONSTANT], before[:CONSTANT])


def test_without_biases_and_means_there_is_no_constant(build: Build, sentences: Sentences) -> None:
    captured = capture(build("Llama"), sentences)
    split = decompose(captured)
    assert not split.terms[:, CONSTANT].any()
    assert split.constant_rank() == constant_rank_bound(captured) == [0, 0, 0]
    # Qwen2's queries, keys and values have biases
    assert constant_rank_bound(capture(build("Qwen2"), sentences)) == [0, 1, 1]


def test_a_linear_feed_forward_is_fitted_to_the_last_digit(
    build: Build, sentences: Sentences
) -> None:
    captured = capture(build("Bert"), sentences)
    g = torch.Generator().manual_seed(0)
    x = torch.randn(4, 100, 16, generator=g, dtype=torch.float64) * torch.logspace(-3, 3, 16)
    noise = torch.randn(4, 100, 3, generator=g, dtype=torch.float64)
    y = x @ torch.randn(16, 3, generator=g, dtype=torch.float64) + 5
    mask = torch.ones(4, 100, dtype=torch.bool)

    def moments(y: Tensor) -> Any:
        step = Written(0, "feed_forward", y, None, x)
        return feed_forward_moments([replace(captured, steps=(step,), mask=mask)])[0]

    assert feed_forward_r2(moments(y)) == pytest.approx(1, abs=1e-9)
    # noise as large as what x explains of each output: r^2 is near 1/2, and below on other tokens
    noisy = moments(y + noise * y.std((0, 1)))
    assert feed_forward_r2(noisy) == pytest.approx(0.5, abs=0.08)
    other = moments(y + noise.flip(0) * y.std((0, 1)))
    assert feed_forward_r2(noisy, other) < feed_forward_r2(noisy)


def test_r2_is_that_of_a_regression_on_z_scores(build: Build) -> None:
    from sklearn.linear_model import LinearRegression

    g = torch.Generator().manual_seed(0)
    model = build("Bert")
    batches = [capture(model, torch.randint(3, 50, (8, 9), generator=g)) for _ in range(3)]
    found = [feed_forward_r2(m) for m in feed_forward_moments(batches)]
    for layer, r2 in enumerate(found):
        steps = [s for b in batches for s in b.steps if isinstance(s, Written)]
        steps = [s for s in steps if s.layer == layer and s.term == "feed_forward"]
        x, y = (
            torch.cat([getattr(s, name).flatten(0, 1) for s in steps]).numpy()
            for name in ("input", "output")
        )
        x, y = ((z - z.mean(0)) / z.std(0) for z in (x, y))
        assert r2 == pytest.approx(LinearRegression().fit(x, y).score(x, y), abs=1e-9)


def test_features_that_never_vary_have_no_share(build: Build, sentences: Sentences) -> None:
    captured = capture(build("Bert"), sentences)
    g = torch.Generator().manual_seed(0)
    x = torch.randn(4, 100, 5, generator=g, dtype=torch.float64)
    # one input that is always 0, one output that is always 1
    x[..., 2] = 0
    y = torch.cat([x @ torch.randn(5, 2, generator=g).double(), torch.ones(4, 100, 1)], dim=-1)

    def fit(y: Tensor) -> float:
        step = Written(0, "feed_forward", y, None, x)
        mask = torch.ones(4, 100, dtype=torch.bool)
        return feed_forward_r2(
            feed_forward_moments([replace(captured, steps=(step,), mask=mask)])[0]
        )

    assert fit(y) == pytest.approx(1, abs=1e-9)
    with pytest.raises(InvalidArgumentError, match="no output feature varies"):
        fit(y[..., 2:])


def test_too_few_tokens_are_no_fit(build: Build, sentences: Sentences) -> None:
    with pytest.raises(InvalidArgumentError, match="needs more than 17 tokens; got 15"):
        feed_forward_r2(feed_forward_moments([capture(build("Bert"), sentences)])[0])


def test_all_terms_together_predict_what_the_model_predicts(
    build: Build, family: str, sentences: Sentences
) -> None:
    model = build(family)
    split = decompose(capture(model, sentences))
    with torch.no_grad():
        said = model(**sentences).logits.argmax(-1)
    where = torch.ones_like(said, dtype=torch.bool)
    table = partial_sum_accuracy(output_head(model), [(split, said, where)])
    assert len(table) == 15
    whole = table[table[list(TERMS)].all(axis=1)]
    # 15 tokens that aren't padding
    assert whole[["accuracy", "n"]].to_numpy().tolist() == [[1.0, 15]]
    assert table["accuracy"].min() < 1


def test_partial_sums_add_up_over_batches(build: Build, sentences: Sentences) -> None:
    model = build("Bert")
    targets = sentences["input_ids"]
    where = torch.ones_like(targets, dtype=torch.bool)
    whole = decompose(capture(model, sentences))
    parts = [
        (
            decompose(capture(model, {k: v[at] for k, v in sentences.items()})),
            targets[at],
            where[at],
        )
        for at in (slice(0, 1), slice(1, 3))
    ]
    together = partial_sum_accuracy(output_head(model), [(whole, targets, where)])
    assert together.equals(partial_sum_accuracy(output_head(model), parts))


def test_a_model_without_a_head_predicts_nothing(build: Build, sentences: Sentences) -> None:
    with pytest.raises(InvalidArgumentError, match="BertModel, which has no masked-LM or LM head"):
        output_head(build("Bert").bert)
    split = decompose(capture(build("Bert"), sentences))
    nowhere = torch.zeros(3, 9, dtype=torch.bool)
    with pytest.raises(InvalidArgumentError, match="`where` marks none"):
        partial_sum_accuracy(lambda e: e, [(split, sentences["input_ids"], nowhere)])


def test_subsets_are_all_but_the_empty_one() -> None:
    found = list(subsets(4))
    assert len(set(found)) == len(found) == 2**4 - 1
    assert found[0] == (0,)
    assert found[-1] == (0, 1, 2, 3)


def test_a_share_of_tokens_is_masked_replaced_or_kept() -> None:
    tokens = torch.randint(5, 100, (200, 200), generator=torch.Generator().manual_seed(0))
    where = tokens != 50
    read, chosen = corrupted(tokens, where, mask_token=4, d_vocab=100, generator=torch.Generator())
    assert not chosen[~where].any()
    assert torch.equal(read[~chosen], tokens[~chosen])
    # 6,000 are chosen: shares are within 0.02 (four standard deviations)
    assert float(chosen[where].double().mean()) == pytest.approx(0.15, abs=0.01)
    hidden = (read == 4) & chosen
    assert float(hidden[chosen].double().mean()) == pytest.approx(0.8, abs=0.03)
    # one in ten is kept, and one in a hundred of those replaced is replaced by itself
    kept = (read == tokens) & chosen
    assert float(kept[chosen].double().mean()) == pytest.approx(0.101, abs=0.03)


def test_terms_of_each_layer_sum_to_the_terms_of_all(
    build: Build, family: str, sentences: Sentences
) -> None:
    captured = capture(build(family), sentences)
    found, split = terms_by_layer(captured), decompose(captured)
    real = captured.mask
    assert len(set(found.names)) == len(found.names) == len(found.terms)
    for number, kind in enumerate(split.names):
        rows = [row for row, (name, _) in enumerate(found.names) if name == kind]
        summed = found.terms[rows].sum(0)
        assert torch.allclose(summed[real], split.terms[-1, number][real], atol=1e-9)
    layers = [layer for name, layer in found.names if name == "heads"]
    assert layers == list(captured.layer_numbers)
    # heads of a layer together are the sum of the heads' terms
    for of_layer, expected in zip(
        (found.terms[found.names.index(("heads", layer))] for layer in layers),
        head_terms(captured).sum(1), strict=True,
    ):  # fmt: skip
        assert torch.allclose(of_layer[real], expected[real], atol=1e-6)
    assert torch.allclose(found.importance().sum(0)[real], torch.ones(1).double(), atol=1e-9)
