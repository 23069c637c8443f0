"""Policies for multi-valued pairs: (subject, predicate) pairs that have several objects.

Real RDF is multi-valued (6-17 % of the pairs in ontologies, most pairs in benchmark graphs), while
the paper's database is a partial function (Wong 2025, section 2). The policy can change the rank up
to eightfold, so it is chosen by name and recorded in every result:

========================  ==========================================================================
``keep``                  every triple stays; the rank is defined, D(k, q) and training are not
``error``                 a multi-valued pair is an error
``first``                 each pair keeps the object that sorts first (RDF itself has no order)
``majority``              each pair keeps its object most frequent with the predicate; ties: first
``set``                   the set of a pair's objects becomes one object
``drop-pair``             multi-valued pairs are omitted
``drop-predicate``        predicates with a multi-valued pair are omitted
========================  ==========================================================================

Each policy depends on the set of facts alone and not on the order of the file, except that blank
nodes are named, and so sorted, in that order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from capacity.database.terms import Term
from capacity.errors import MultiValuedError, MultiValuedWarning
from capacity.options import require_choice

MultiPolicy: TypeAlias = Literal[
    "keep", "error", "first", "majority", "set", "drop-pair", "drop-predicate"
]
POLICIES: tuple[MultiPolicy, ...] = get_args(MultiPolicy)
# the policies after which facts are functional
CHOICE = "first, majority, set, drop-pair or drop-predicate (not keep, not error)"
Triples: TypeAlias = NDArray[np.int64]


def check_policy(policy: str) -> None:
    """Raise an InvalidArgumentError that lists the policies unless `policy` is one of them."""
    advice = "See capacity.database.policy for what each does."
    require_choice("`multi`", policy, POLICIES, advice=advice)


def multi_valued_error(what: str, n_multi_valued: int, n_pairs: int) -> MultiValuedError:
    """Make the error of an operation that needs a functional database; it lists the policies."""
    return MultiValuedError(
        f"{what} needs one object per (subject, predicate) pair; {n_multi_valued} of {n_pairs} "
        f"pairs have several. Choose a policy with multi= or with_policy(): {CHOICE}."
    )


def multi_valued_warning(n_multi_valued: int, n_pairs: int) -> MultiValuedWarning:
    """Make the warning that all objects of multi-valued pairs are kept by default."""
    return MultiValuedWarning(
        f"{n_multi_valued} of {n_pairs} (subject, predicate) pairs have several objects, and all "
        f"are kept. Choose a policy with multi=: {', '.join(POLICIES)}."
    )


def pair_starts(triples: NDArray[np.integer]) -> NDArray[np.int64]:
    """Rows where a new (subject, predicate) pair begins, in triples sorted by row."""
    if not len(triples):
        return np.zeros(0, dtype=np.int64)
    new = np.any(triples[1:, :2] != triples[:-1, :2], axis=1)
    return np.flatnonzero(np.concatenate(([True], new)))


def apply_policy(
    tokens: Sequence[Term], triples: Triples, policy: MultiPolicy
) -> tuple[Sequence[Term], Triples]:
    """Apply a policy to triples of token ids.

    Parameters
    ----------
    tokens : sequence of Term
        Sorted.
    triples : ndarray, shape (n, 3)
        Unique rows of token ids in ascending order.
    policy : MultiPolicy
        One of `POLICIES`.

    Returns
    -------
    tokens : sequence of Term
        The given tokens, followed by the new ones of sets.
    triples : ndarray, shape (n_kept, 3)
        The rows that remain.

    Raises
    ------
    MultiValuedError
        Under ``error``, with the first such pair, or if the policy leaves no fact.
    """
    starts = pair_starts(triples)
    sizes = np.diff(np.append(starts, len(triples)))
    multi = sizes > 1
    if policy == "keep" or not multi.any():
        return tokens, triples
    if policy == "error":
        k, q, _ = triples[starts[np.argmax(multi)]]
        raise MultiValuedError(
            f"Under the policy `error` every (subject, predicate) pair must have one object; "
            f"{int(multi.sum())} of {len(starts)} pairs have several, the first is "
            f"({tokens[k]}, {tokens[q]}). Choose another policy: {CHOICE}."
        )
    if policy == "first":
        return tokens, triples[starts]
    if policy == "majority":
        return tokens, triples[_majority(triples, starts, sizes)]
    if policy == "set":
        return _sets(tokens, triples, starts, sizes)
    if policy == "drop-pair":
        kept = triples[np.repeat(~multi, sizes)]
    else:
        bad = np.unique(triples[starts[multi], 1])
        kept = triples[~np.isin(triples[:, 1], bad)]
    if not len(kept):
        raise MultiValuedError(
            f"The policy `{policy}` leaves no fact: {int(multi.sum())} of {len(starts)} pairs are "
            f"multi-valued. Choose another policy: {', '.join(POLICIES)}."
        )
    return tokens, kept


def _majority(
    triples: Triples, starts: NDArray[np.int64], sizes: NDArray[np.int64]
) -> NDArray[np.int64]:
    _, use, counts = np.unique(triples[:, 1:], axis=0, return_inverse=True, return_counts=True)
    frequency = counts[use.ravel()]
    pair = np.repeat(np.arange(len(starts)), sizes)
    # lexsort is stable, so among equally frequent objects the one that sorts first comes first
    order = np.lexsort((-frequency, pair))
    return order[starts]


def _sets(
    tokens: Sequence[Term],
    triples: Triples,
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> tuple[Sequence[Term], Triples]:
    import json

    new_tokens = list(tokens)
    ids: dict[str, int] = {}
    kept = triples[starts].copy()
    for pair in np.flatnonzero(sizes > 1):
        rows = triples[starts[pair] : starts[pair] + sizes[pair], 2]
        # JSON keeps {"a", "b"} and {"a b"} apart, and the kinds of the members
        text = json.dumps([tokens[v] for v in rows], ensure_ascii=False)
        if text not in ids:
            ids[text] = len(new_tokens)
            new_tokens.append(Term("set", text))
        kept[pair, 2] = ids[text]
    return new_tokens, kept
