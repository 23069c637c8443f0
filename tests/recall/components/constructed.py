"""A GPT-2 with weights set by hand, of which it is known which heads bring which facts.

Words are one-hot vectors. All queries and keys are 0, so that a token attends to all up to itself
alike. Head 2 of layer 1 maps a subject to its capital and its currency, and head 1 of layer 0 maps
the words "capital" and "currency" to all capitals and all currencies. Other heads and the
feed-forwards write small random vectors.
"""

from __future__ import annotations

from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

from capacity import Database

SUBJECT_HEAD, PREDICATE_HEAD = (1, 2), (0, 1)
SUBJECTS = ("Norway", "Japan", "Peru", "Chad", "Mali", "Cuba")
CAPITALS = ("Oslo", "Tokyo", "Lima", "Njamena", "Bamako", "Havana")
CURRENCIES = ("krone", "yen", "sol", "franc", "cfa", "peso")
WORDS = ("<s>", "The", "capital", "currency", "of", "is", *SUBJECTS, *CAPITALS, *CURRENCIES)
TEMPLATES = {one: f"The {one} of {{subject}} is {{object}}" for one in ("capital", "currency")}
CAPITAL = {"capital": TEMPLATES["capital"]}
D, N_HEADS, D_HEAD = 64, 4, 16


def facts() -> Database:
    """Twelve facts."""
    rows = [(s, "capital", o) for s, o in zip(SUBJECTS, CAPITALS, strict=True)]
    rows += [(s, "currency", o) for s, o in zip(SUBJECTS, CURRENCIES, strict=True)]
    return Database.from_triples(rows)


def tokenizer() -> Any:
    """A token for each word."""
    of = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, "<s>"))
    of.pre_tokenizer = pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=of, bos_token="<s>")


def model(*, noise: float = 0.01, strength: float = 1.0) -> Any:
    """The model; `strength` is the factor of what the head of subjects writes."""
    config = transformers.GPT2Config(
        vocab_size=len(WORDS), n_embd=D, n_layer=2, n_head=N_HEADS, n_positions=16, bos_token_id=0,
        eos_token_id=0, tie_word_embeddings=False, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    torch.manual_seed(0)
    found: Any = transformers.GPT2LMHeadModel(config).double().eval()
    with torch.no_grad():
        for weight in found.parameters():
            if weight.ndim > 1:
                torch.nn.init.normal_(weight, std=noise)
        found.transformer.wte.weight.copy_(torch.eye(D)[: len(WORDS)])
        found.transformer.wpe.weight.zero_()
        found.lm_head.weight.copy_(torch.eye(D)[: len(WORDS)])
        for layer in found.transformer.h:
            # columns of queries, keys and values
            layer.attn.c_attn.weight[:, : 2 * D] = 0
        pairs = [(s, (c, m)) for s, c, m in zip(SUBJECTS, CAPITALS, CURRENCIES, strict=True)]
        _set(found, SUBJECT_HEAD, [(s, o, strength) for s, o in pairs])
        # weaker than the subject's, but enough to choose between its capital and its currency
        _set(found, PREDICATE_HEAD, [("capital", CAPITALS, 0.5), ("currency", CURRENCIES, 0.5)])
    return found


def by_attention() -> Any:
    """A model of which queries and keys bring three capitals, and values none.

    Layer 0 copies the subject to the last token. There it is the query of head 1 of layer 1, which
    attends to one of the words "The", "capital" and "of", whose values are the three capitals.
    """
    found = model(noise=0.0, strength=0.0)
    words = WORDS.index("The"), WORDS.index("capital"), WORDS.index("of")
    first, second = (layer.attn for layer in found.transformer.h)
    with torch.no_grad():
        for attn in (first, second):
            attn.c_attn.weight.zero_()
            attn.c_proj.weight.zero_()
        for at, (word, subject, capital) in enumerate(zip(words, SUBJECTS, CAPITALS, strict=False)):
            own = WORDS.index(subject)
            first.c_attn.weight[own, 2 * D + at] = 1
            first.c_proj.weight[at, own] = 1
            begin = D_HEAD + at
            second.c_attn.weight[own, begin] = 5
            second.c_attn.weight[word, D + begin] = 5
            second.c_attn.weight[word, 2 * D + begin] = 1
            second.c_proj.weight[begin, WORDS.index(capital)] = 1
    return found


def _set(of: Any, place: tuple[int, int], writes: list[tuple[str, tuple[str, ...], float]]) -> None:
    """Let a head read words into one dimension each, and write others for it."""
    layer, head = place
    attn = of.transformer.h[layer].attn
    begin = head * D_HEAD
    values = slice(2 * D + begin, 2 * D + begin + D_HEAD)
    attn.c_attn.weight[:, values] = 0
    attn.c_proj.weight[begin : begin + D_HEAD] = 0
    for at, (read, written, strength) in enumerate(writes):
        attn.c_attn.weight[WORDS.index(read), 2 * D + begin + at] = 1
        for word in written:
            attn.c_proj.weight[begin + at, WORDS.index(word)] = strength
