"""Differences between tokenizers and between models, and what is refused."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers
from tokenizers import Tokenizer
from tokenizers import models as token_models

from capacity import Database
from capacity.errors import CapacityError, InvalidArgumentError, InvalidTypeError
from capacity.recall import recall
from capacity.recall.scores.continuations import ContinuationScorer
from capacity.recall.sentences import Query, Sentence, Writer
from capacity.transformer import load_pretrained
from tests.recall.tiny_language_models import bert, byte_tokenizer, facts, gpt2, llama, rows_of, t5

CAPITAL = {"capital": "The capital of {subject} is {object}."}


def placed(model: Any, tokenizer: Any, kind: Any, before: str, name: str, after: str) -> Any:
    """Tokens of a sentence before its object, of the object, and after it."""
    one = Writer(model, tokenizer, kind).query(before, [name], after, (0,)).sentences[0]
    words = tokenizer.convert_ids_to_tokens(list(one.ids))
    return words[: one.first], words[one.first : one.last], words[one.last :]


def test_the_blank_before_an_object_is_in_its_first_token() -> None:
    model, tokenizer = gpt2()
    got = placed(model, tokenizer, "causal", "The capital of Norway is ", "Oslo", ".")
    assert got == (["The", "Ġcapital", "Ġof", "ĠNorway", "Ġis"], ["ĠOslo"], ["."])
    # a word that isn't known as a whole, and one without a blank before it
    got = placed(model, tokenizer, "causal", "The capital (", "Tokyo", ") is")
    assert got[1:] == (["Tok", "yo"], [")", "Ġis"])


def test_words_of_bert_have_no_blanks_and_signs_of_ends_stay() -> None:
    got = placed(*bert(), "masked", "The capital of Japan is ", "Tokyo", ".")
    assert got == (["[CLS]", "the", "capital", "of", "japan", "is"], ["tok", "##yo"],
                   [".", "[SEP]"])  # fmt: skip


def test_a_token_before_the_text_stays_and_one_after_it_goes() -> None:
    model, tokenizer = llama()
    assert tokenizer.convert_ids_to_tokens(tokenizer("is Oslo")["input_ids"]) == [
        "<s>", "is", "ĠOslo", "</s>",
    ]  # fmt: skip
    assert placed(model, tokenizer, "causal", "is ", "Oslo", "") == (
        ["<s>", "is"], ["ĠOslo"], [],
    )  # fmt: skip


def test_a_text_that_begins_with_its_object_begins_with_the_token_for_that() -> None:
    model, tokenizer = gpt2()
    assert placed(model, tokenizer, "causal", "", "Oslo", " is")[0] == ["<s>"]
    tokenizer.bos_token = None
    with pytest.raises(InvalidArgumentError, match=r"must have text before \{object\}"):
        placed(model, tokenizer, "causal", "", "Oslo", " is")


def test_the_decoder_of_t5_writes_what_the_sentinel_replaces() -> None:
    model, tokenizer = t5()
    writer = Writer(model, tokenizer, "encoder-decoder")
    query = writer.query("The capital is ", ["Oslo"], ".", (0,))
    (one,) = query.sentences
    assert tokenizer.convert_ids_to_tokens(list(one.ids)) == [
        "<pad>", "<extra_id_0>", "▁Oslo", "<extra_id_1>",
    ]  # fmt: skip
    assert (one.first, one.last) == (2, 3)
    assert "<extra_id_0>" in tokenizer.convert_ids_to_tokens(list(query.source))


@pytest.mark.parametrize("make", [bert, t5])
def test_what_the_tokenizer_does_not_know_is_refused(make: Any) -> None:
    model, tokenizer = make()
    db = Database.from_triples([("Norway", "capital", "Oslo"), ("Japan", "capital", "東京")])
    with pytest.raises(InvalidArgumentError, match="it has none, and what it doesn't know can't"):
        recall(model, tokenizer, db, CAPITAL)


def test_objects_that_are_the_beginning_of_others_are_noted() -> None:
    model, tokenizer = gpt2()
    db = facts().select(predicates="borders")
    got = recall(model, tokenizer, db, {"borders": "{subject} borders {object}"})
    (note,) = got.notes
    assert "'Guinea' is the beginning of that with 'Guinea-Bissau'" in note
    assert "End the template with a full stop." in note
    # which it can't lose to, whatever the model is; with a full stop it could
    for row in rows_of(got.table):
        assert row.answer != "Guinea-Bissau"
    assert not recall(model, tokenizer, db, {"borders": "{subject} borders {object}."}).notes


def test_a_chat_template_is_not_applied_and_that_is_noted() -> None:
    model, tokenizer = gpt2()
    plain = recall(model, tokenizer, facts(), CAPITAL)
    tokenizer.chat_template = "<s>{{ messages[0].content }}"
    chat = recall(model, tokenizer, facts(), CAPITAL)
    assert chat.table.equals(plain.table)
    assert "chat template, which isn't applied" in chat.notes[-1]


def test_an_object_without_a_token_is_refused() -> None:
    model, tokenizer = bert()
    with pytest.raises(InvalidArgumentError, match=r"Every object must have a token; '\\u200b'"):
        Writer(model, tokenizer, "masked").query("It is ", ["\u200b"], ".", (0,))


def test_a_sentence_that_is_longer_than_the_model_reads_is_refused() -> None:
    model, tokenizer = gpt2()
    with pytest.raises(InvalidArgumentError, match="at most 64 tokens, which the model reads"):
        recall(model, tokenizer, facts(), {"capital": "x " * 60 + "{subject} {object}"})


def test_models_without_a_head_are_refused_with_the_reason() -> None:
    model, tokenizer = bert()
    config = model.config
    for other, reason in (
        (model.bert, "BertModel has none, so that it can't be asked"),
        (transformers.BertForSequenceClassification(config), "has none"),
        (transformers.BertLMHeadModel(config), "its config has is_decoder=False"),
        (transformers.T5Model(t5()[0].config), "T5Model has none"),
        (transformers.T5EncoderModel(t5()[0].config), "T5EncoderModel has none"),
    ):
        with pytest.raises(InvalidArgumentError, match=reason):
            recall(other, tokenizer, facts(), CAPITAL)
    with pytest.raises(InvalidTypeError, match="must be a model of transformers"):
        recall(torch.nn.Linear(1, 1), tokenizer, facts(), CAPITAL)


def test_tokenizers_that_cannot_be_used_are_refused() -> None:
    model, tokenizer = bert()
    tokenizer.mask_token = None
    with pytest.raises(InvalidArgumentError, match="that is masked must have a mask token"):
        recall(model, tokenizer, facts(), CAPITAL)
    slow = SimpleNamespace(is_fast=False)
    with pytest.raises(InvalidArgumentError, match="must be a fast tokenizer"):
        recall(gpt2()[0], slow, facts(), CAPITAL)


def test_wrong_calls_are_refused() -> None:
    model, tokenizer = gpt2()
    for options, message in (
        ({"candidates": "objects"}, "must be 'predicate', 'all', a list"),
        ({"candidates": ["Oslo"]}, "must contain the object of every fact; 4 are missing"),
        ({"candidates": [5]}, "must be names of objects or terms"),
        ({"candidates": {"capitol": ["Oslo"]}}, "No predicate is called 'capitol'"),
        ({"answers": "first"}, "must be one of all, best"),
        ({"batch_size": 0}, "an integer of at least 1"),
        ({"pseudo_likelihood": "none"}, "must be one of one_token"),
        ({"label_predicates": ["name"]}, "No predicate is called 'name'"),
        ({"labels": 5}, "needs a Database"),
    ):
        with pytest.raises(CapacityError, match=message):
            recall(model, tokenizer, facts(), CAPITAL, **options)  # type: ignore[arg-type]
    four = Database.from_tuples([("a", "b", "c", "d")])
    with pytest.raises(CapacityError, match=r"arity|three"):
        recall(model, tokenizer, four)


RECURRENT: dict[str, tuple[str, dict[str, Any]]] = {
    "Mamba": ("Mamba", {"num_hidden_layers": 1, "state_size": 4}),
    # with layers of attention, too
    "LFM2": ("Lfm2", {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
                      "intermediate_size": 24, "layer_types": ["conv", "full_attention"]}),
}  # fmt: skip


@pytest.mark.parametrize("family", RECURRENT)
def test_a_model_whose_states_cannot_be_repeated_is_asked_without_a_cache(family: str) -> None:
    torch.manual_seed(0)
    tokenizer = byte_tokenizer()
    name, sizes = RECURRENT[family]
    config = getattr(transformers, f"{name}Config")(
        vocab_size=len(tokenizer), hidden_size=16, **sizes
    )
    model = getattr(transformers, f"{name}ForCausalLM")(config).double().eval()
    one = recall(model, tokenizer, facts(), CAPITAL).table
    two = recall(model, tokenizer, facts(), CAPITAL, batch_size=1, cache=False).table
    assert one["score"].to_numpy() == pytest.approx(two["score"].to_numpy(), abs=1e-9)


def test_a_tokenizer_of_another_model_is_refused() -> None:
    model, tokenizer = gpt2()
    model.resize_token_embeddings(200)
    with pytest.raises(InvalidArgumentError, match="that of the model, which knows 200 tokens"):
        recall(model, tokenizer, facts(), CAPITAL)


def test_objects_with_the_same_tokens_are_noted() -> None:
    model, tokenizer = bert()
    db = Database.from_triples([("Norway", "capital", "Oslo"), ("Japan", "capital", "OSLO")])
    found = recall(model, tokenizer, db, CAPITAL)
    assert "tokens of 'OSLO' and 'Oslo' are the same" in found.notes[0]
    assert found.table["margin"].to_numpy() == pytest.approx([0, 0], abs=1e-9)


def test_words_of_a_tokenizer_without_rules_are_single_tokens() -> None:
    # an object that the tokenizer joins with the sign after it
    vocab = {"[UNK]": 0, "It is": 1, " A.": 2, " B.": 3}
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(token_models.Unigram([(k, -1.0) for k in vocab], unk_id=0)),
        unk_token="[UNK]",
    )
    model = gpt2()[0]
    one = Writer(model, tokenizer, "causal").query("It is ", ["A", "B"], ".", (0,)).sentences[0]
    assert one == ((1, 2), 1, 2)


def test_an_encoder_decoder_is_loaded_with_its_head(tmp_path: Path) -> None:
    model, tokenizer = t5()
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded = load_pretrained(tmp_path, head=True)
    assert type(loaded[0]).__name__ == "T5ForConditionalGeneration"
    one = recall(model, tokenizer, facts(), CAPITAL).table["score"]
    two = recall(*loaded, facts(), CAPITAL).table["score"]
    # loaded in the precision in which it was saved
    assert one.to_numpy() == pytest.approx(two.to_numpy(), abs=1e-9)


@pytest.mark.parametrize("make", [gpt2, bert])
def test_a_model_that_computes_no_numbers_is_refused(make: Any, tmp_path: Path) -> None:
    model, tokenizer = make()
    model.get_output_embeddings().weight.data[:] = float("nan")
    with pytest.raises(InvalidArgumentError, match="some are NaN"):
        recall(model, tokenizer, facts(), CAPITAL, keep=tmp_path / "answers.jsonl")
    assert not (tmp_path / "answers.jsonl").exists()


def test_sentences_without_a_common_beginning_are_refused() -> None:
    model, _ = gpt2()
    scorer = ContinuationScorer(model, batch_size=1, cache=True)
    query = Query((Sentence((1, 2), 1, 2), Sentence((3, 2), 1, 2)), (0,))
    with pytest.raises(InvalidArgumentError, match="must begin with the same token"):
        [*scorer.together([query], best_only=False)]
