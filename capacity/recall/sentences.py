"""Sentences as tokens, with the place of the object's tokens.

A sentence is tokenized whole, so that each word has the tokens that the tokenizer assigns to it
there: with the blank before it, or joined with the sign after it. The object's tokens are those of
which a character is the object's, or a blank before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from capacity.checks import in_a_line, shown
from capacity.errors import InvalidArgumentError
from capacity.recall.models import Kind
from capacity.transformer.activations.models.inputs import longest
from capacity.transformer.activations.models.pretrained import decoder_start

SENTINELS = ("<extra_id_0>", "<extra_id_1>")


class Sentence(NamedTuple):
    """Tokens of a sentence; of an encoder-decoder, those that its decoder writes.

    Attributes
    ----------
    ids : tuple of int
        Token ids; special tokens that end the text of a causal model are omitted.
    first, last : int
        The object's tokens are ``ids[first:last]``, at least one.
    """

    ids: tuple[int, ...]
    first: int
    last: int


@dataclass(frozen=True)
class Query:
    """A subject and a template, with a sentence for each candidate.

    Attributes
    ----------
    sentences : tuple of Sentence
        One for each candidate.
    right : tuple of int
        Indices of the candidates that are right answers, ascending.
    source : tuple of int
        What the encoder of an encoder-decoder reads; empty for other models.
    """

    sentences: tuple[Sentence, ...]
    right: tuple[int, ...]
    source: tuple[int, ...] = ()


class Writer:
    """Tokenizes sentences for a model.

    Parameters
    ----------
    model, tokenizer : PreTrainedModel, tokenizer
        The model and its tokenizer.
    kind : Kind
        Kind of the model.

    Raises
    ------
    InvalidArgumentError
        If the tokenizer doesn't report where its tokens are in the text, or has no mask for a model
        that needs one.
    """

    def __init__(self, model: Any, tokenizer: Any, kind: Kind) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise InvalidArgumentError(
                "`tokenizer` must be a fast tokenizer of transformers, which reports where each "
                f"token is in the text; got {type(tokenizer).__name__}. Load it by "
                "load_pretrained or AutoTokenizer."
            )
        self._tokenizer, self._kind = tokenizer, kind
        self._longest = longest(model.base_model)
        self._n_known = model.get_input_embeddings().num_embeddings
        self._special = set(tokenizer.all_special_ids)
        self.mask: str | None = tokenizer.mask_token
        known = tokenizer.get_vocab()
        self._sentinels = (
            [known[one] for one in SENTINELS]
            if kind == "encoder-decoder" and all(one in known for one in SENTINELS)
            else None
        )
        if self._sentinels is not None:
            self.mask = SENTINELS[0]
        if kind != "causal" and self.mask is None:
            raise InvalidArgumentError(
                f"The tokenizer of a model that is {kind} must have a mask token, or the sentinels "
                f"{' and '.join(SENTINELS)}, for the object's place; {type(tokenizer).__name__} "
                "has neither."
            )
        self._begin = (decoder_start(model),) if kind == "encoder-decoder" else ()

    def query(
        self, before: str, candidates: Sequence[str], after: str, right: tuple[int, ...]
    ) -> Query:
        """Tokenize the sentences of all candidates.

        Parameters
        ----------
        before, after : str
            Text before the object, and after it.
        candidates : sequence of str
            Objects.
        right : tuple of int
            Indices of the right ones.

        Raises
        ------
        InvalidArgumentError
            If the tokenizer has no token for a part of the text, none for an object, or tokens
            that the model doesn't have; if the sentence is longer than the model reads; or if it
            begins with the object and the tokenizer has no token for the beginning of a text.
        """
        source: tuple[int, ...] = ()
        if self._kind == "encoder-decoder":
            source = tuple(self._tokens([f"{before}{self.mask}{after}"])[0][0])
        if self._sentinels is not None:
            # the decoder writes only what the sentinel replaces
            opening, closing = self._sentinels
            sentences = [
                Sentence((*self._begin, opening, *ids, closing), 2, 2 + len(ids))
                for ids in self._alone(candidates)
            ]
        else:
            texts = [f"{before}{one}{after}" for one in candidates]
            sentences = [
                self._placed(text, ids, ends, len(before.rstrip()), len(before) + len(one))
                for text, one, (ids, ends) in zip(
                    texts, candidates, self._tokens(texts), strict=True
                )
            ]
        highest = max(source + tuple(max(one.ids) for one in sentences))
        if highest >= self._n_known:
            raise InvalidArgumentError(
                f"The tokenizer must be that of the model, which knows {self._n_known:,} tokens; "
                f"{type(self._tokenizer).__name__} has a token of the number {highest:,}. Load "
                "both from the same folder."
            )
        most = max(len(source), *(len(one.ids) for one in sentences))
        if self._longest is not None and most > self._longest:
            raise InvalidArgumentError(
                f"A sentence must have at most {self._longest} tokens, which the model reads; "
                f"{shown(before)} with its longest object has {most}. Shorten the template."
            )
        return Query(tuple(sentences), right, source)

    def text(self, ids: Sequence[int]) -> str:
        """Decode tokens, without blanks around them."""
        return self._tokenizer.decode(list(ids)).strip()

    def _tokens(self, texts: list[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
        try:
            got = self._tokenizer(texts, return_offsets_mapping=True)
        except Exception as error:
            raise InvalidArgumentError(
                f"The tokenizer must be able to read the sentences; {in_a_line(error)}"
            ) from None
        unknown = self._tokenizer.unk_token_id
        for text, ids, ends in zip(texts, got["input_ids"], got["offset_mapping"], strict=True):
            for token, (begin, end) in zip(ids, ends, strict=True):
                if token == unknown and end > begin:
                    raise InvalidArgumentError(
                        "The tokenizer must have tokens for all of a sentence; for "
                        f"{shown(text[begin:end])} in {shown(text)} it has none, and what it "
                        "doesn't know can't be an answer. Exclude these facts, or pass other "
                        "labels."
                    )
        return list(zip(got["input_ids"], got["offset_mapping"], strict=True))

    def _alone(self, candidates: Sequence[str]) -> list[tuple[int, ...]]:
        """Tokens of the objects themselves, without special ones."""
        return [
            tuple(self._not_empty(one, [i for i, (a, b) in zip(ids, ends, strict=True) if b > a]))
            for one, (ids, ends) in zip(candidates, self._tokens(list(candidates)), strict=True)
        ]

    def _placed(
        self, text: str, ids: list[int], ends: list[tuple[int, int]], begin: int, end: int
    ) -> Sentence:
        """Find the object, from the character `begin` to `end`, among the tokens."""
        at = [i for i, (a, b) in enumerate(ends) if b > max(a, begin) and a < end]
        self._not_empty(text[begin:end].strip(), at)
        first, last = at[0], at[-1] + 1
        if self._kind == "masked":
            return Sentence(tuple(ids), first, last)
        if self._kind == "encoder-decoder":
            return Sentence((*self._begin, *ids), first + 1, last + 1)
        # no text ends there: a template may be the beginning of one
        while ids[-1] in self._special and ends[len(ids) - 1][0] == ends[len(ids) - 1][1]:
            ids = ids[:-1]
        if first > 0:
            return Sentence(tuple(ids), first, last)
        begins = self._tokenizer.bos_token_id
        if begins is None:
            raise InvalidArgumentError(
                "A template must have text before {object} for a tokenizer without a token for "
                f"the beginning of a text; {shown(text)} begins with the object. Write a template "
                "in which it comes later."
            )
        return Sentence((begins, *ids), 1, last + 1)

    def _not_empty(self, name: str, at: list[int]) -> list[int]:
        if not at:
            raise InvalidArgumentError(
                f"Every object must have a token; {shown(name)} has none. Exclude its facts, or "
                "pass another label."
            )
        return at
