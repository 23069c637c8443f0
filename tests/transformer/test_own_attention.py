"""Attention in code of a family's own, compared with the formulas of its paper in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from capacity.errors import InvalidArgumentError
from capacity.transformer import capture, decompose
from tests.transformer.tiny_models import build, inputs_of

F64 = torch.float64
HEADS, N = 4, 9
# key position minus query position
APART = torch.arange(N)[None] - torch.arange(N)[:, None]
# slopes of ALiBi for 4 heads, 2^(-8 i / 4) (Press et al. 2022, section 3)
SLOPES = torch.tensor([2.0 ** (-2 * i) for i in range(1, HEADS + 1)], dtype=F64)[:, None, None]
# queries, keys and values by head, shape (batch, heads, n, d), and logits beside scale * q k^T
Parts = tuple[Tensor, Tensor, Tensor, Tensor | float]


def by_head(x: Tensor) -> Tensor:
    return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)


def mapped(x: Tensor, linear: Any) -> Tensor:
    bias = 0 if linear.bias is None else linear.bias
    return x @ linear.weight.T + bias


def rotated(x: Tensor, *, adjacent: bool, width: int) -> Tensor:
    """Rotary positions (Su et al. 2021): pairs of features turn by position / 10000^(2i / d)."""
    turn = torch.arange(N)[:, None] * 10000.0 ** (-torch.arange(0, width, 2, dtype=F64) / width)
    some, rest = x[..., :width], x[..., width:]
    a, b = (some[..., ::2], some[..., 1::2]) if adjacent else some.chunk(2, -1)
    a, b = a * turn.cos() - b * turn.sin(), b * turn.cos() + a * turn.sin()
    both = torch.stack([a, b], -1).flatten(-2) if adjacent else torch.cat([a, b], -1)
    return torch.cat([both, rest], -1)


def bloom(module: Any, x: Tensor, _: Any) -> Parts:
    q, k, v = mapped(x, module.query_key_value).view(2, N, HEADS, 3, -1).permute(3, 0, 2, 1, 4)
    return q, k, v, SLOPES * torch.arange(N)


def mpt(module: Any, x: Tensor, _: Any) -> Parts:
    q, k, v = (by_head(one) for one in mapped(x, module.Wqkv).chunk(3, -1))
    return q, k, v, SLOPES * APART


def gpt_j(module: Any, x: Tensor, _: Any) -> Parts:
    q, k, v = (by_head(mapped(x, m)) for m in (module.q_proj, module.k_proj, module.v_proj))
    q, k = (rotated(one, adjacent=True, width=4) for one in (q, k))
    return q, k, v, 0.0


def falcon(module: Any, x: Tensor, _: Any) -> Parts:
    """Queries of all heads, then one key and one value."""
    all_of = mapped(x, module.query_key_value).view(2, N, HEADS + 2, -1).transpose(1, 2)
    q, k, v = all_of.split([HEADS, 1, 1], dim=1)
    q, k = (rotated(one, adjacent=False, width=8) for one in (q, k))
    return q, k.expand_as(q), v.expand_as(q), 0.0


def falcon_alibi(module: Any, x: Tensor, _: Any) -> Parts:
    q, k, v = mapped(x, module.query_key_value).view(2, N, HEADS, 3, -1).permute(3, 0, 2, 1, 4)
    # it scales what it adds, too, and its eager code adds it twice: with the mask, and by itself
    return q, k, v, 2 * SLOPES * torch.arange(N) / math.sqrt(8)


def falcon_groups(module: Any, x: Tensor, _: Any) -> Parts:
    """Split each group into the queries of its heads, a key and a value."""
    all_of = mapped(x, module.query_key_value).view(2, N, 2, HEADS // 2 + 2, -1)
    q, k, v = all_of.permute(0, 2, 3, 1, 4).split([HEADS // 2, 1, 1], dim=2)
    q, k, v = (one.expand(2, 2, HEADS // 2, N, 8).flatten(1, 2) for one in (q, k, v))
    q, k = (rotated(one, adjacent=False, width=8) for one in (q, k))
    return q, k, v, 0.0


def mpnet(module: Any, x: Tensor, model: Any) -> Parts:
    """Biases of relative positions by buckets of T5: exact up to 7, then by the logarithm."""
    q, k, v = (by_head(mapped(x, m)) for m in (module.q, module.k, module.v))
    # of 32 buckets 16 are for each direction; a distance of 8 is the first of the logarithmic ones
    buckets = APART.abs() + 16 * (APART > 0)
    bias = model.encoder.relative_attention_bias.weight[buckets].permute(2, 0, 1)
    return q, k, v, bias


def disentangled(
    q: Tensor, k: Tensor, q_of_positions: Tensor, k_of_positions: Tensor, span: int
) -> Tensor:
    """Content to position and position to content: He et al. (2021), equation (4), unscaled.

    delta(i, j) = clip(i - j + span, 0, 2 span - 1) is the row of keys and queries of positions. The
    paper has delta(j, i) for the second; the authors' code, and transformers, have delta(i, j).
    """
    delta = (span - APART).clamp(0, 2 * span - 1)
    c2p = torch.einsum("bhid,hijd->bhij", q, k_of_positions[:, delta])
    p2c = torch.einsum("bhjd,hijd->bhij", k, q_of_positions[:, delta])
    return c2p + p2c


def deberta(module: Any, x: Tensor, model: Any) -> Parts:
    in_heads = (x @ module.in_proj.weight.T).view(2, N, HEADS, 3, -1).permute(3, 0, 2, 1, 4)
    q, k, v = in_heads
    q, v = (one + b.view(HEADS, 1, -1) for one, b in ((q, module.q_bias), (v, module.v_bias)))
    positions = model.encoder.rel_embeddings.weight[None]
    of = [by_head(mapped(positions, m))[0] for m in (module.pos_q_proj, module.pos_proj)]
    return q, k, v, disentangled(q, k, of[0], of[1], 6) / math.sqrt(3 * 8)


def deberta_v2(module: Any, x: Tensor, model: Any) -> Parts:
    linear = (module.query_proj, module.key_proj, module.value_proj)
    q, k, v = (by_head(mapped(x, m)) for m in linear)
    positions = model.encoder.rel_embeddings.weight[None]
    of = [by_head(mapped(positions, m))[0] for m in (module.pos_query_proj, module.pos_key_proj)]
    return q, k, v, disentangled(q, k, of[0], of[1], 6) / math.sqrt(3 * 8)


@dataclass(frozen=True)
class Formula:
    """Name of the modules that attend, what they compute, its scale, and the path to W_O."""

    kind: str
    parts: Callable[..., Parts]
    output: str
    causal: bool = True
    scale: float = 1 / math.sqrt(8)
    # softmax, logits or scales are in float32
    slack: float = 2e-6


FORMULAS = {
    "BLOOM": Formula("BloomAttention", bloom, "h.{}.self_attention.dense"),
    "MPT": Formula("MptAttention", mpt, "blocks.{}.attn.out_proj"),
    "GPT-J": Formula("GPTJAttention", gpt_j, "h.{}.attn.out_proj"),
    "Falcon": Formula("FalconAttention", falcon, "h.{}.self_attention.dense"),
    "Falcon, alibi": Formula("FalconAttention", falcon_alibi, "h.{}.self_attention.dense"),
    "Falcon, groups": Formula("FalconAttention", falcon_groups, "h.{}.self_attention.dense"),
    "MPNet": Formula("MPNetSelfAttention", mpnet, "encoder.layer.{}.attention.attn.o",
                     causal=False, slack=1e-12),
    "DeBERTa": Formula("DisentangledSelfAttention", deberta,
                       "encoder.layer.{}.attention.output.dense",
                       causal=False, scale=1 / math.sqrt(24), slack=1e-7),
    "DeBERTa-v2": Formula("DisentangledSelfAttention", deberta_v2,
                          "encoder.layer.{}.attention.output.dense",
                          causal=False, scale=1 / math.sqrt(24), slack=1e-7),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMULAS)
@torch.no_grad()
def test_what_is_recorded_is_the_formula_of_the_family(name: str) -> None:
    formula = FORMULAS[name]
    model, inputs = build(name, F64), inputs_of(name, F64)
    modules = [m for m in model.modules() if type(m).__name__ == formula.kind]
    read = inputs_of_modules(model, modules, inputs)
    captured = capture(model, inputs, check="full")
    assert captured.causal == formula.causal
    assert captured.n_layers == len(modules) == 2
    for index, (layer, module) in enumerate(zip(captured.layers, modules, strict=True)):
        q, k, v, added = formula.parts(module, read[index], model)
        scores = formula.scale * q @ k.mT
        logits = scores + added
        logits = logits.masked_fill(APART > 0, -torch.inf) if formula.causal else logits
        assert torch.allclose(layer.pattern, logits.softmax(-1), rtol=0, atol=formula.slack)
        recorded = layer.scale * layer.q @ layer.k.mT
        assert torch.allclose(recorded, scores, rtol=0, atol=10 * formula.slack)
        assert torch.allclose(layer.v, v, rtol=0, atol=formula.slack)
        W_O = model.get_submodule(formula.output.format(index))
        assert torch.equal(layer.W_O.flatten(0, 1), W_O.weight.T)
        # of an input of 0 only the bias of values is left
        bias = formula.parts(module, torch.zeros_like(read[index]), model)[2][0, :, 0]
        assert (layer.b_V is None) == (not bias.any())
        assert layer.b_V is None or torch.allclose(layer.b_V, bias, rtol=0, atol=1e-12)


def test_eager_code_that_is_another_model_is_refused() -> None:
    # transformers 5.23 adds ALiBi once for sdpa, which the model was loaded with
    model = build("Falcon, alibi", torch.float32)
    model.config._attn_implementation = "sdpa"
    with pytest.raises(InvalidArgumentError, match="must be the model as it is; last embeddings"):
        capture(model, inputs_of("Falcon, alibi", torch.float32))


def inputs_of_modules(
    model: Any, modules: list[nn.Module], inputs: dict[str, Tensor]
) -> list[Tensor]:
    found: list[Tensor] = []

    def keep(_: nn.Module, args: Any, kwargs: Any) -> None:
        found.append(args[0] if args else kwargs["hidden_states"])

    hooks = [m.register_forward_pre_hook(keep, with_kwargs=True) for m in modules]
    model(**inputs)
    for hook in hooks:
        hook.remove()
    return found


def test_a_window_of_a_familys_own_code_is_known() -> None:
    captured = capture(build("GPT-Neo", F64), inputs_of("GPT-Neo", F64))
    all_earlier, window = captured.layers
    assert captured.causal
    assert all_earlier.seen is None
    # each token attends to itself and the five before it
    assert window.seen is not None
    assert torch.equal(window.seen[0], (APART <= 0) & (APART > -6))


class Attention(nn.Module):
    """Attention of one head, which does something more; see `more`."""

    def __init__(self, more: str) -> None:
        super().__init__()
        self.more = more
        self.q, self.k, self.v, self.o = (nn.Linear(8, 8) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        logits = self.q(x) @ self.k(x).mT / math.sqrt(8)
        if self.more == "logits of positions alone":
            logits = torch.zeros_like(logits) + torch.arange(x.shape[1])
        weights = logits.softmax(-1)
        v = self.v(x)
        if self.more == "values":
            v = v.tanh()
        if self.more == "weights":
            weights = weights * 0.5
        z = (weights[:, None] @ v[:, None])[:, 0]
        if self.more == "outputs":
            z = z.tanh()
        return self.o(z)


def model_with(more: str) -> Any:
    from transformers import PretrainedConfig, PreTrainedModel

    class Own(PreTrainedModel):
        config_class = PretrainedConfig
        _supports_sdpa = True

        def __init__(self, config: Any) -> None:
            super().__init__(config)
            self.embedding = nn.Embedding(60, 8)
            self.layers = nn.ModuleList(Attention(more) for _ in range(2))
            self.post_init()

        def get_input_embeddings(self) -> nn.Module:
            return self.embedding

        def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> tuple[Tensor]:
            x = self.embedding(input_ids)
            for layer in self.layers:
                x = x + layer(x)
            return (x,)

    torch.manual_seed(0)
    return Own(PretrainedConfig.from_dict({"vocab_size": 60})).eval()


@torch.no_grad()
def test_any_code_that_averages_values_is_captured() -> None:
    model, tokens = model_with("nothing"), inputs_of("GPT-2", torch.float32)["input_ids"]
    captured = capture(model, tokens, check="full")
    x = model.embedding(tokens)
    for layer, module in zip(captured.layers, model.layers, strict=True):
        pattern = (module.q(x) @ module.k(x).mT / math.sqrt(8)).softmax(-1)
        assert torch.allclose(layer.pattern[:, 0], pattern, atol=1e-6)
        assert layer.scale == pytest.approx(1 / math.sqrt(8))
        assert layer.b_V is not None
        assert torch.allclose(layer.b_V[0], module.v.bias)
        x = x + module(x)
    assert torch.allclose(decompose(captured).embeddings[-1], x, atol=1e-6)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("logits of positions alone", "must be the softmax of products of queries and keys"),
        ("values", "must be columns of a linear module's output"),
        ("weights", "rows are off by 0.5"),
        ("outputs", "W_O isn't one linear module"),
    ],
)
def test_code_that_does_something_else_is_refused(more: str, why: str) -> None:
    with pytest.raises(InvalidArgumentError, match=why):
        capture(model_with(more), inputs_of("GPT-2", torch.float32))


def test_code_that_fails_by_itself_is_refused_with_its_words() -> None:
    model = build("GPT-2", torch.float32)
    model.wpe.weight.data = model.wpe.weight.data[:, :-1]
    with pytest.raises(
        InvalidArgumentError, match="by itself; GPT2Model in float32 raises Runtime"
    ):
        capture(model, inputs_of("GPT-2", torch.float32))
