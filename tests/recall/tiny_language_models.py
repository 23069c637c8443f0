"""Tiny language models with random weights in float64, each with a tokenizer of its family."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import torch
import transformers
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from capacity import Database

# some are one token each below and others several, and Guinea begins Guinea-Bissau
CAPITALS = (
    ("Norway", "Oslo"), ("Japan", "Tokyo"), ("Peru", "Lima"), ("Chad", "N'Djamena"),
    ("Malaysia", "Kuala Lumpur"),
)  # fmt: skip
TEMPLATES = {
    "capital": ["The capital of {subject} is {object}.", "{object} is the capital of {subject}",
                "In {subject}, it's {object} that rules"],
    "borders": ["{subject} borders {object}."],
}  # fmt: skip
BORDERS = (
    ("Norway", "Japan"), ("Norway", "Guinea-Bissau"), ("Peru", "Guinea"), ("Chad", "Peru"),
)  # fmt: skip
WORDS = ("The", "capital", "of", "is", "the", "In", "it", "'", "s", "that", "rules", "borders", ",",
         ".", "-")  # fmt: skip
_SIZES: dict[str, Any] = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24,
    "max_position_embeddings": 64,
}  # fmt: skip
_T5: dict[str, Any] = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2}
_BART: dict[str, Any] = {
    "d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24,
    "max_position_embeddings": 64,
}  # fmt: skip


def rows_of(table: Any) -> Iterator[Any]:
    """Rows of a table, whose columns are attributes."""
    return table.itertuples()


def facts() -> Database:
    """Five capitals, and borders of which Norway has two."""
    rows = [(s, "capital", o) for s, o in CAPITALS] + [(s, "borders", o) for s, o in BORDERS]
    return Database.from_triples(rows, multi="keep")


def byte_tokenizer(*, begins: bool = False, ends: bool = False, **special: str) -> Any:
    """Byte-level BPE whose merges make whole words of some names, with the blank before them.

    Parameters
    ----------
    begins, ends : bool
        Put <s> before each text, and </s> after it.
    **special : str
        Further special tokens by their names.
    """
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {token: i for i, token in enumerate(["<s>", "</s>", *alphabet])}
    merges: list[tuple[str, str]] = []
    for word in (*WORDS[:6], "Oslo", "Tok", "yo", "Ku", "ala", "Guinea", "Norway", "Per", "Lima"):
        pairs = [(word[:i], word[i]) for i in range(1, len(word))]
        for pair in (*pairs, ("Ġ", word)):
            if pair not in merges:
                merges.append(pair)
                vocab.setdefault("".join(pair), len(vocab))
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    single = f"{'<s> ' if begins else ''}$A{' </s>' if ends else ''}"
    if begins or ends:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=single, special_tokens=[("<s>", 0), ("</s>", 1)]
        )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="</s>", **special
    )


def word_tokenizer() -> Any:
    """WordPiece of BERT, which knows the words of the templates, and names in pieces."""
    pieces = ["oslo", "tok", "##yo", "lim", "##a", "n", "dj", "##am", "##ena", "kuala", "lump",
              "##ur", "norway", "japan", "peru", "chad",
              "malaysia", "guinea", "bissau"]  # fmt: skip
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = [*special, *dict.fromkeys([w.lower() for w in WORDS] + pieces)]
    tokenizer = Tokenizer(
        models.WordPiece(vocab={w: i for i, w in enumerate(words)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]",
    )  # fmt: skip


def piece_tokenizer() -> Any:
    """Unigrams with the sign of a blank, and sentinels, as T5 has them."""
    signs = "▁abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.,'-"
    special = ("<pad>", "</s>", "<unk>", "<extra_id_0>", "<extra_id_1>")
    words = (f"▁{word}" for word in (*WORDS[:6], "Oslo", "Tok", "Guinea", "Norway"))
    pieces = [(one, 0.0) for one in special] + [(sign, -9.0) for sign in signs]
    pieces += [(word, -4.0) for word in words]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=2))
    tokenizer.normalizer = normalizers.Replace(Regex(" {2,}"), " ")
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>",
        extra_special_tokens=["<extra_id_0>", "<extra_id_1>"],
    )  # fmt: skip


def _ready(model: Any) -> Any:
    # drawn from a wide distribution, so that probabilities differ and rounding is far from ties
    torch.manual_seed(1)
    for weight in model.parameters():
        if weight.ndim > 1:
            torch.nn.init.normal_(weight, std=0.4)
    return model.double().eval()


def gpt2(**special: Any) -> tuple[Any, Any]:
    """A GPT-2, whose tokenizer adds no token."""
    tokenizer = byte_tokenizer(**special)
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer), n_embd=16, n_layer=2, n_head=2, n_positions=64, bos_token_id=0,
        eos_token_id=1,
    )  # fmt: skip
    return _ready(transformers.GPT2LMHeadModel(config)), tokenizer


def llama(**config: Any) -> tuple[Any, Any]:
    """A Llama, whose tokenizer puts <s> before each text and </s> after it."""
    tokenizer = byte_tokenizer(begins=True, ends=True)
    sizes: dict[str, Any] = {
        **_SIZES,
        "num_key_value_heads": 1,
        "vocab_size": len(tokenizer),
        **config,
    }
    return _ready(transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes))), tokenizer


def mistral() -> tuple[Any, Any]:
    """A Mistral that sees six tokens, fewer than the templates have."""
    tokenizer = byte_tokenizer(begins=True)
    sizes: dict[str, Any] = {
        **_SIZES,
        "num_key_value_heads": 1,
        "vocab_size": len(tokenizer),
        "sliding_window": 6,
    }
    return _ready(transformers.MistralForCausalLM(transformers.MistralConfig(**sizes))), tokenizer


def bert() -> tuple[Any, Any]:
    """A BERT with its masked-LM head."""
    tokenizer = word_tokenizer()
    config = transformers.BertConfig(**_SIZES, vocab_size=len(tokenizer))
    return _ready(transformers.BertForMaskedLM(config)), tokenizer


def t5() -> tuple[Any, Any]:
    """A T5, whose decoder writes what a sentinel replaces."""
    tokenizer = piece_tokenizer()
    sizes = {**_T5, "vocab_size": len(tokenizer), "decoder_start_token_id": 0}
    config = transformers.T5Config(**sizes)
    return _ready(transformers.T5ForConditionalGeneration(config)), tokenizer


def bart() -> tuple[Any, Any]:
    """A BART, whose decoder writes the whole text."""
    tokenizer = byte_tokenizer(begins=True, ends=True, mask_token="<mask>")
    config = transformers.BartConfig(
        **_BART, vocab_size=len(tokenizer), decoder_start_token_id=1, bos_token_id=0,
        eos_token_id=1, pad_token_id=1,
    )  # fmt: skip
    return _ready(transformers.BartForConditionalGeneration(config)), tokenizer


MODELS = {"GPT-2": gpt2, "Llama": llama, "Mistral": mistral, "BERT": bert, "T5": t5, "BART": bart}


@functools.cache
def trained() -> tuple[Any, Any]:
    """A GPT-2 that was trained until it knows the facts, and no others."""
    tokenizer = byte_tokenizer(begins=True)
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer), n_embd=32, n_layer=1, n_head=2, n_positions=64, bos_token_id=0,
        eos_token_id=1, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(config)
    texts = [
        template.replace("{subject}", str(s)).replace("{object}", str(o))
        for s, p, o in facts()
        for template in TEMPLATES[str(p)]
    ]
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    wanted = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)[:, 1:]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(120):
        optimizer.zero_grad()
        logits = model(**batch).logits[:, :-1]
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten()).backward()
        optimizer.step()
    return model.double().eval(), tokenizer
