"""The lens after a layer predicts as the model does without later layers."""

from __future__ import annotations

import copy
from typing import Any

import pandas as pd
import pytest
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from capacity.errors import CapacityError, InvalidArgumentError
from capacity.plots import plot_logit_lens
from capacity.transformer import capture, logit_attribution, logit_lens
from tests.transformer.test_logit_attribution import DECODERS, F64, lm
from tests.transformer.tiny_models import GROUPED, GROUPS, TEXT, TWO, build, inputs_of

# heads that aren't affine, after norms that are a part of the layers
MASKED = ("BERT", "ALBERT", "RoBERTa", "DistilBERT", "ELECTRA", "ModernBERT", "RoCBert")


def of_stage(model: Any, inputs: dict[str, Tensor], stage: int, n_layers: int) -> Tensor:
    """Logits of the model whose layers from `stage` on return what they are passed."""
    short = copy.deepcopy(model)
    lists = [m for m in short.modules() if isinstance(m, nn.ModuleList)]
    layers = next(one for one in lists if len(one) == n_layers)

    def passed(_: nn.Module, args: Any, kwargs: Any, output: Any) -> Any:
        x = args[0] if args else kwargs["hidden_states"]
        return x if isinstance(output, Tensor) else (x, *output[1:])

    for layer in layers[stage:]:
        layer.register_forward_hook(passed, with_kwargs=True)
    with torch.no_grad():
        return short(**inputs).logits.double()


def compare(model: Any, inputs: dict[str, Tensor]) -> None:
    captured = capture(model, inputs)
    real = captured.mask
    config = model.config.get_text_config()
    n_layers = config.num_hidden_layers
    table = logit_lens(model, captured, top=3)
    for stage in range(n_layers + 1):
        expected = of_stage(model, inputs, stage, n_layers)[real]
        rows = table[table["stage"] == stage]
        assert rows["position"].tolist() == real.nonzero()[:, 1].repeat_interleave(3).tolist()
        best = expected.topk(3)
        assert rows["token"].tolist() == best.indices.flatten().tolist()
        slack: dict[str, Any] = {"atol": 1e-5, "rtol": 1e-5}
        found = torch.tensor(rows["logit"].to_numpy())
        torch.testing.assert_close(found, best.values.flatten(), **slack)
        shares = expected.softmax(-1).gather(1, best.indices).flatten()
        torch.testing.assert_close(torch.tensor(rows["probability"].to_numpy()), shares, **slack)
        assert rows["rank"].tolist() == [1, 2, 3] * int(real.sum())


@pytest.mark.parametrize(
    "name",
    [
        name if name in ("GPT-2", "Gemma 2") else pytest.param(name, marks=pytest.mark.slow)
        for name in DECODERS
        if name != "LongCat-Flash"
    ],
)
def test_a_stage_predicts_what_the_model_without_later_layers_does(name: str) -> None:
    inputs = inputs_of("Llama", F64)
    inputs["attention_mask"] = torch.tensor([[1] * 9, [1] * 6 + [0] * 3])
    compare(lm(name), inputs)


@pytest.mark.parametrize(
    "name", [x if x == "BERT" else pytest.param(x, marks=pytest.mark.slow) for x in MASKED]
)
def test_norms_in_the_layers_and_heads_of_several_layers_are_the_models_own(name: str) -> None:
    model, inputs = build(name, F64, head="ForMaskedLM"), inputs_of("BERT", F64)
    if name != "ALBERT":
        compare(model, inputs)
        return
    # its one layer is called twice
    lens = logit_lens(model, capture(model, inputs))
    for stage in (1, 2):
        other = copy.deepcopy(model)
        other.config.num_hidden_layers = other.albert.encoder.config.num_hidden_layers = stage
        with torch.no_grad():
            expected = other(**inputs).logits.argmax(-1).flatten()
        assert lens[lens["stage"] == stage]["token"].tolist() == expected.tolist()


OTHERS: dict[str, dict[str, Any]] = {
    # a factor of logits, a cap of 15, streams in rows of one token, a decoder in a wrapper
    "CohereForCausalLM": {**GROUPED, "logit_scale": 0.3},
    "NanoChatForCausalLM": {**GROUPS, "final_logit_softcapping": 15.0},
    "GPTBigCodeForCausalLM": {"n_embd": 32, "n_layer": 2, "n_head": 4, **TEXT},
    "BartForCausalLM": {**TWO, "is_encoder_decoder": False},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_heads_of_other_families_are_read_as_they_are(name: str) -> None:
    import transformers

    torch.manual_seed(0)
    kind: Any = getattr(transformers, name)
    model = kind(kind.config_class(**OTHERS[name])).double().eval()
    tokens = inputs_of("Llama", F64)["input_ids"]
    captured = capture(model, tokens)
    lens, found = logit_lens(model, captured), logit_attribution(model, captured, 5)
    with torch.no_grad():
        logits = model(tokens).logits.double()
    last = lens[lens["stage"] == lens["stage"].max()]
    assert last["token"].tolist() == logits.argmax(-1).flatten().tolist()
    assert found.softcap == OTHERS[name].get("final_logit_softcapping")
    expected = logits[:, -1, 5]
    expected = expected if found.softcap is None else 15 * (expected / 15).atanh()
    assert torch.allclose(found.logits.double(), expected, atol=1e-6)


def test_one_token_is_ranked_at_every_stage() -> None:
    model, inputs = lm("Gemma 2"), inputs_of("Llama", F64)
    captured = capture(model, inputs)
    found = logit_lens(model, captured, [5, 8])
    assert found.groupby("sentence")["token"].unique().map(list).tolist() == [[5], [8]]
    with torch.no_grad():
        logits = model(**inputs).logits
    last = found[found["stage"] == 2].reset_index()
    for row in last.itertuples():
        of = logits[row.sentence, row.position]
        assert row.logit == pytest.approx(float(of[row.token]), abs=1e-6)
        assert row.rank == 1 + int((of > of[row.token]).sum())
    one = logit_lens(model, captured, 5, positions=[3, 4])
    assert one[["stage", "position"]].to_numpy().tolist() == [[0, 3], [1, 3], [2, 3],
                                                               [0, 4], [1, 4], [2, 4]]  # fmt: skip


def test_more_rows_than_are_in_memory_at_a_time_are_read_in_order() -> None:
    model = lm("Llama")
    tokens = torch.randint(3, 57, (11, 9), generator=torch.Generator().manual_seed(0))
    captured = capture(model, tokens)
    lens = logit_lens(model, captured)
    with torch.no_grad():
        expected = model(tokens).logits.argmax(-1).flatten().tolist()
    assert lens[lens["stage"] == 2]["token"].tolist() == expected
    assert len(lens) == 3 * 99


def test_the_model_is_left_as_it_was() -> None:
    model, tokens = lm("GPT-2"), inputs_of("Llama", F64)["input_ids"]
    captured = capture(model, tokens)
    model.train()
    logit_lens(model, captured)
    assert model.training
    assert model.transformer.ln_f.training
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_tokens_and_positions_that_there_are_not_are_refused() -> None:
    model, tokens = lm("Llama"), inputs_of("Llama", F64)["input_ids"]
    captured = capture(model, tokens)
    cases: list[tuple[Any, str]] = [
        ({"tokens": 60}, "`tokens` must be at most 59"), ({"top": 0}, "`top`"),
        ({"tokens": [1]}, "one for each of 2 sentences; got 1"), ({"positions": -1}, "`positions`"),
    ]  # fmt: skip
    for change, said in cases:
        with pytest.raises(CapacityError, match=said):
            logit_lens(model, captured, **change)


def test_models_without_a_head_and_other_models_are_refused() -> None:
    body, tokens = build("Llama", F64), inputs_of("Llama", F64)["input_ids"]
    captured = capture(body, tokens)
    with pytest.raises(InvalidArgumentError, match="Load it with its head"):
        logit_lens(body, captured)
    with pytest.raises(InvalidArgumentError, match="got those of a LlamaModel"):
        logit_lens(lm("GPT-2"), captured)
    model = lm("Llama")
    some = capture(model, tokens, layers=[0])
    with pytest.raises(InvalidArgumentError, match="residual stream"):
        logit_lens(model, some)


def test_code_that_reads_something_else_after_the_last_layer_is_refused() -> None:
    class CountingNorm(nn.RMSNorm):
        """A norm with another gain for any other number of tokens than nine."""

        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) * (1 if x.shape[1] == 9 else 2)

    model, tokens = lm("Llama"), inputs_of("Llama", F64)["input_ids"]
    model.model.norm = CountingNorm(32, eps=1e-6).double()
    captured = capture(model, tokens)
    captured.require_steps()
    with pytest.raises(InvalidArgumentError, match="reads something else as well"):
        logit_lens(model, captured)


WORDS = ["the", "$x$", "Tokyo", "a name of far too many letters"]
LENS = pd.DataFrame({
    "sentence": [0] * 6 + [1], "stage": [0, 0, 1, 1, 2, 2, 0], "position": [0, 2, 0, 2, 0, 2, 0],
    "token": [0, 1, 2, 3, 2, 2, 0], "probability": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7],
})  # fmt: skip


def drawn(figure: Figure) -> tuple[list[str], list[float]]:
    panel = figure.axes[0]
    values = panel.collections[0].get_array()
    assert values is not None
    return [text.get_text() for text in panel.texts], values.ravel().tolist()


def test_the_last_stage_is_on_top_with_words_in_place_of_ids() -> None:
    figure = plot_logit_lens(LENS, ["Japan", "pad", "is"], WORDS.__getitem__, title="$ lens")
    words, shares = drawn(figure)
    assert words == ["Tokyo", "Tokyo", "Tokyo", "a name of far too…", "the", r"\$x\$"]
    assert shares == [0.5, 0.6, 0.3, 0.4, 0.1, 0.2]
    panel = figure.axes[0]
    assert [label.get_text() for label in panel.get_yticklabels()] == ["2", "1", "0"]
    # the columns are those of the positions that the table has
    assert [label.get_text() for label in panel.get_xticklabels()] == ["Japan", "is"]


def test_of_several_tokens_the_first_is_drawn_and_any_sentence() -> None:
    second = LENS.assign(token=3, probability=0.01)
    both = pd.concat([LENS, second]).sort_values(["sentence", "stage", "position"], kind="stable")
    figure = plot_logit_lens(both, ["a", "b", "c"], WORDS.__getitem__)
    assert drawn(figure)[1] == [0.5, 0.6, 0.3, 0.4, 0.1, 0.2]
    assert drawn(plot_logit_lens(LENS, ["a"], WORDS.__getitem__, sentence=1)) == (["the"], [0.7])
    # a position that isn't in every stage is empty there
    fewer = LENS.drop(index=1)
    assert drawn(plot_logit_lens(fewer, ["a", "b", "c"], WORDS.__getitem__))[0][-1] == "the"


def test_other_sentences_too_few_tokens_and_too_many_rows_are_refused() -> None:
    for table, said in (
        (LENS[LENS["sentence"] == 1], "none is of 0"),
        (pd.concat([LENS.assign(stage=i) for i in range(50)]), "at most 40 rows"),
    ):
        with pytest.raises(CapacityError, match=said):
            plot_logit_lens(table, ["a", "b", "c"], WORDS.__getitem__)
    with pytest.raises(CapacityError, match="each position up to 2; got 2"):
        plot_logit_lens(LENS, ["a", "b"], WORDS.__getitem__)
