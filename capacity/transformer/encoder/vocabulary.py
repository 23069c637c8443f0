"""`Vocabulary`: map texts to tokens of an `EncoderClassifier`.

Texts are normalised as in torchtext's ``basic_english``, which Bhardwaj et al. (2021, section 6)
use: lower case; ``. , ( ) ! ?`` and the apostrophe are words of their own; ``"``, ``;``, ``:`` and
HTML line breaks are dropped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError

PAD, UNK, CLS = range(3)
RESERVED = ("<pad>", "<unk>", "<cls>")
_BLANK = re.compile(r"<br />|[;:]")
_WORD_OF_ITS_OWN = re.compile(r"[.,()!?']")


def words_of(text: str) -> list[str]:
    """Split a text into lower-case words and marks of punctuation.

    Examples
    --------
    >>> words_of("You can't: (ever)!")
    ['you', 'can', "'", 't', '(', 'ever', ')', '!']
    """
    text = text.lower().replace('"', "")
    return _WORD_OF_ITS_OWN.sub(r" \g<0> ", _BLANK.sub(" ", text)).split()


@briefly_shown
@dataclass(frozen=True)
class Vocabulary:
    """Words that have a token of their own.

    Parameters
    ----------
    words : tuple of str
        Different words; token t is ``words[t]``. The first are ``<pad>``, ``<unk>`` and ``<cls>``,
        which represent no words of a text.

    Raises
    ------
    InvalidArgumentError
        If a word is repeated, or the first three are others.

    Examples
    --------
    >>> vocabulary = Vocabulary.of_texts(["A dog!", "a cat"], at_least=2)
    >>> vocabulary.words
    ('<pad>', '<unk>', '<cls>', 'a')
    >>> tokens, mask = vocabulary.encode(["A dog", "a"], n_positions=8)
    >>> tokens.tolist(), mask.tolist()
    ([[2, 3, 1], [2, 3, 0]], [[True, True, True], [True, True, False]])
    """

    words: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.words[: len(RESERVED)] != RESERVED:
            raise InvalidArgumentError(
                f"`words` must begin with {', '.join(RESERVED)}; got "
                f"{', '.join(self.words[: len(RESERVED)]) or 'none'}. Use Vocabulary.of_texts(...)."
            )
        if len(set(self.words)) < len(self.words):
            twice = Counter(self.words).most_common(1)[0][0]
            raise InvalidArgumentError(
                f"`words` must all differ; {twice!r:.60} comes twice. Drop one."
            )

    @classmethod
    def of_texts(cls, texts: Iterable[str], *, at_least: int = 1) -> Vocabulary:
        """Build the vocabulary of texts, by decreasing frequency, then in alphabetical order.

        Parameters
        ----------
        texts : iterable of str
            Texts whose words get tokens.
        at_least : int
            Smallest number of occurrences of a word that gets a token.

        Returns
        -------
        Vocabulary
            Reserved tokens, then words.

        Raises
        ------
        InvalidArgumentError
            If `texts` is a single string, or `at_least` is below 1.
        """
        if at_least < 1:
            raise InvalidArgumentError(f"`at_least` must be at least 1; got {at_least}.")
        _refuse_a_string(texts)
        counts = Counter(word for text in texts for word in words_of(text))
        kept = [w for w, n in counts.items() if n >= at_least and w not in RESERVED]
        return cls((*RESERVED, *sorted(kept, key=lambda word: (-counts[word], word))))

    def __len__(self) -> int:
        """Number of tokens, d_vocab of a model."""
        return len(self.words)

    @cached_property
    def _tokens(self) -> dict[str, int]:
        first = len(RESERVED)
        return {word: token for token, word in enumerate(self.words[first:], start=first)}

    def encode(
        self, texts: Sequence[str], n_positions: int
    ) -> tuple[Int[Tensor, "batch n"], Bool[Tensor, "batch n"]]:
        """Encode texts as tokens: ``<cls>``, then words, truncated and padded.

        Parameters
        ----------
        texts : sequence of str
            Texts to encode; unknown words become ``<unk>``.
        n_positions : int
            Largest number of tokens of a text, including ``<cls>``.

        Returns
        -------
        tokens : int64 tensor, shape (len(texts), n)
            Token ids, with n the length of the longest text, at most `n_positions`.
        mask : bool tensor, shape (len(texts), n)
            True for tokens, False for padding.

        Raises
        ------
        InvalidArgumentError
            If `texts` is a single string or empty, or `n_positions` is below 1.
        """
        if n_positions < 1:
            raise InvalidArgumentError(f"`n_positions` must be at least 1; got {n_positions}.")
        _refuse_a_string(texts)
        if not len(texts):
            raise InvalidArgumentError("`texts` must hold at least one text; got none.")
        rows = [
            [CLS, *(self._tokens.get(word, UNK) for word in words_of(text))][:n_positions]
            for text in texts
        ]
        lengths = torch.tensor([len(row) for row in rows])
        n = int(lengths.max())
        tokens = torch.tensor([row + [PAD] * (n - len(row)) for row in rows])
        return tokens, torch.arange(n) < lengths[:, None]


def _refuse_a_string(texts: object) -> None:
    if isinstance(texts, str):
        raise InvalidArgumentError(
            "`texts` must be a sequence of texts; got one string. Put it in a list: [text]."
        )
