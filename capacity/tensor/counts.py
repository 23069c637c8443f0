"""Tensors that count the n-grams of a text.

References
----------
Wong 2025, section 5.2: D generalises to an n-tensor that stores n-gram statistics.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from capacity.checks import require_integer, shown
from capacity.errors import InvalidArgumentError
from capacity.tensor.dense import from_coo
from capacity.tensor.sparse import SparseTensor

# the arity of facts is limited to as much
MOST_WORDS = 32


def from_counts(text: str | Sequence[str], n: int) -> SparseTensor:
    """Count the n-grams of a text: T[w_1, ..., w_n] is how often these words follow one another.

    Parameters
    ----------
    text : str or sequence of str
        A text, which is split at white space, or its tokens.
    n : int
        Number of words of an n-gram, from 1 to 32: the order of the tensor.

    Returns
    -------
    SparseTensor
        All modes have one index for each distinct word, in sorted order:
        ``sorted(set(text.split()))``. The entries sum to the number of words less n - 1.

    Raises
    ------
    InvalidArgumentError
        For a text of fewer than n words, tokens that aren't str, or another n.

    Examples
    --------
    >>> T = from_counts("the cat saw the cat", 2)
    >>> T.shape, T.to_numpy().tolist()   # cat, saw, the
    ((3, 3), [[0, 1, 0], [0, 0, 1], [2, 0, 0]])
    """
    n = require_integer("n", n, most=MOST_WORDS)
    words = text.split() if isinstance(text, str) else list(text)
    if not all(isinstance(word, str) for word in words):
        raise InvalidArgumentError(f"`text` must be a str, or tokens that are; got {shown(text)}.")
    if len(words) < n:
        raise InvalidArgumentError(f"`text` must have at least n = {n} words; it has {len(words)}.")
    distinct, numbers = np.unique(np.array(words, dtype=object), return_inverse=True)
    grams = np.lib.stride_tricks.sliding_window_view(numbers.ravel(), n)
    return from_coo(grams, np.ones(len(grams), np.int64), (len(distinct),) * n)
