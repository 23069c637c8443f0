"""The canonical form of facts: sorted tokens, sorted unique triples, and their hash.

Two sets of facts are equal exactly when their canonical forms are, whatever file, order or library
they came from; but blank nodes are told apart by their names, which are a file's own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from capacity.database.terms import Term


def canonical(
    tokens: Sequence[Term], triples: NDArray[np.int64]
) -> tuple[Sequence[Term], NDArray[np.int64]]:
    """Sort the tokens in use, and the unique triples over them.

    Parameters
    ----------
    tokens : sequence of Term
        Distinct, in any order.
    triples : ndarray of int64, shape (n, 3)
        Indices into `tokens`.

    Returns
    -------
    tokens : sequence of Term
        Those in use, sorted.
    triples : ndarray of int64, shape (n_unique, 3)
        In ascending order.
    """
    used = np.unique(triples)
    order = sorted(used.tolist(), key=lambda i: tokens[i])
    rank = np.full(len(tokens), -1, dtype=np.int64)
    rank[order] = np.arange(len(order))
    rows = rank[triples]
    n = len(order)
    if n**3 < 2**62:
        # one int64 a row sorts many times faster than rows do
        packed = np.unique((rows[:, 0] * n + rows[:, 1]) * n + rows[:, 2])
        rows = np.stack([packed // (n * n), packed // n % n, packed % n], axis=1)
    else:
        rows = np.unique(rows, axis=0)
    return [tokens[i] for i in order], rows


def facts_sha256(tokens: Sequence[Term], triples: NDArray[np.integer]) -> str:
    """SHA-256 of facts in canonical form.

    Of one JSON array ``[kind, text, datatype, language]`` in ASCII and a newline for each token in
    order, followed by the token-id triples in order as little-endian int32.
    """
    digest = hashlib.sha256()
    for token in tokens:
        digest.update(json.dumps(token).encode() + b"\n")
    digest.update(triples.astype("<i4").tobytes())
    return digest.hexdigest()
