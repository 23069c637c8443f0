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

In databases of another arity than 3 a pair is a key, all cells of a fact but its object.
``majority`` and ``drop-predicate`` name predicates and need arity 3.

Each policy depends on the set of facts alone and not on the order of the file, except that blank
nodes are named, and so sorted, in that order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from capacity.checks import require_choice
from capacity.database.arity import key_names
from capacity.database.terms.term import Term, display
from capacity.errors import InvalidArgumentError, MultiValuedError, MultiValuedWarning

MultiPolicy: TypeAlias = Literal[
    "keep", "error", "first", "majority", "set", "drop-pair", "drop-predicate"
]
POLICIES: tuple[MultiPolicy, ...] = get_args(MultiPolicy)
# the policies that look at predicates
OF_TRIPLES: tuple[MultiPolicy, ...] = ("majority", "drop-predicate")
Tuples: TypeAlias = NDArray[np.int64]


def policies_for(arity: int) -> tuple[MultiPolicy, ...]:
    """List the policies that facts of an arity can have.

    Examples
    --------
    >>> policies_for(4)
    ('keep', 'error', 'first', 'set', 'drop-pair')
    """
    return tuple(policy for policy in POLICIES if arity == 3 or policy not in OF_TRIPLES)


def check_policy(policy: str, arity: int = 3) -> None:
    """Raise an InvalidArgumentError that lists the policies unless `policy` is one for the arity.

    Raises
    ------
    InvalidArgumentError
        For an unknown policy, or one that names predicates where there are none.
    """
    advice = "See capacity.database.policy for what each does."
    require_choice("`multi`", policy, POLICIES, advice=advice)
    if policy not in policies_for(arity):
        raise InvalidArgumentError(
            f"`multi` must be one of {', '.join(policies_for(arity))} for facts of arity {arity}; "
            f"got '{policy}', which needs predicates, and so facts of arity 3."
        )


def multi_valued_error(
    what: str, n_multi_valued: int, n_pairs: int, arity: int = 3
) -> MultiValuedError:
    """Make the error of an operation that needs a functional database; it lists the policies."""
    one, several = key_names(arity)
    return MultiValuedError(
        f"{what} needs one object per {one}; {n_multi_valued} of {n_pairs} {several} have several. "
        f"Choose a policy with multi= or with_policy(): {_choice(arity)}."
    )


def multi_valued_warning(n_multi_valued: int, n_pairs: int, arity: int = 3) -> MultiValuedWarning:
    """Make the warning that all objects of multi-valued pairs are kept by default."""
    return MultiValuedWarning(
        f"{n_multi_valued} of {n_pairs} {key_names(arity)[0]}s have several objects, and all "
        f"are kept. Choose a policy with multi=: {', '.join(policies_for(arity))}."
    )


def _choice(arity: int) -> str:
    """List the policies after which facts are functional."""
    *others, last = (one for one in policies_for(arity) if one not in ("keep", "error"))
    return f"{', '.join(others)} or {last} (not keep, not error)"


def pair_starts(tuples: NDArray[np.integer]) -> NDArray[np.int64]:
    """Rows where a new key begins, in tuples sorted by row; of triples, a new pair."""
    if not len(tuples):
        return np.zeros(0, dtype=np.int64)
    new = np.any(tuples[1:, :-1] != tuples[:-1, :-1], axis=1)
    return np.flatnonzero(np.concatenate(([True], new)))


def apply_policy(
    tokens: Sequence[Term], tuples: Tuples, policy: MultiPolicy, prefixes: Mapping[str, str]
) -> tuple[Sequence[Term], Tuples]:
    """Apply a policy to tuples of token ids.

    Parameters
    ----------
    tokens : sequence of Term
        Sorted.
    tuples : ndarray, shape (n, arity)
        Unique rows of token ids in ascending order.
    policy : MultiPolicy
        One of `POLICIES`.
    prefixes : mapping of str to str
        Prefixes of short names, for messages.

    Returns
    -------
    tokens : sequence of Term
        The given tokens, followed by the new ones of sets.
    tuples : ndarray, shape (n_kept, arity)
        The rows that remain.

    Raises
    ------
    MultiValuedError
        Under ``error``, with the first such pair, or if the policy leaves no fact.
    """
    arity = tuples.shape[1]
    one, several = key_names(arity)
    starts = pair_starts(tuples)
    sizes = np.diff(np.append(starts, len(tuples)))
    multi = sizes > 1
    if policy == "keep" or not multi.any():
        return tokens, tuples
    if policy == "error":
        key = tuples[starts[np.argmax(multi)]][:-1].tolist()
        first = ", ".join(display(tokens[i], prefixes) for i in key)
        raise MultiValuedError(
            f"Under the policy `error` every {one} must have one object; "
            f"{int(multi.sum())} of {len(starts)} {several} have several, the first is "
            f"({first}). Choose another policy by multi= or with_policy(): {_choice(arity)}."
        )
    if policy == "first":
        return tokens, tuples[starts]
    if policy == "majority":
        return tokens, tuples[_majority(tuples, starts, sizes)]
    if policy == "set":
        return _sets(tokens, tuples, starts, sizes)
    if policy == "drop-pair":
        kept = tuples[np.repeat(~multi, sizes)]
    else:
        bad = np.unique(tuples[starts[multi], 1])
        kept = tuples[~np.isin(tuples[:, 1], bad)]
    if not len(kept):
        raise MultiValuedError(
            f"The policy `{policy}` leaves no fact: {int(multi.sum())} of {len(starts)} {several} "
            "are multi-valued. Choose another policy by multi= or with_policy(): "
            f"{', '.join(policies_for(arity))}."
        )
    return tokens, kept


def _majority(
    tuples: Tuples, starts: NDArray[np.int64], sizes: NDArray[np.int64]
) -> NDArray[np.int64]:
    _, use, counts = np.unique(tuples[:, 1:], axis=0, return_inverse=True, return_counts=True)
    frequency = counts[use.ravel()]
    pair = np.repeat(np.arange(len(starts)), sizes)
    # lexsort is stable, so among equally frequent objects the one that sorts first comes first
    order = np.lexsort((-frequency, pair))
    return order[starts]


def _sets(
    tokens: Sequence[Term],
    tuples: Tuples,
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> tuple[Sequence[Term], Tuples]:
    import json

    new_tokens = list(tokens)
    ids: dict[str, int] = {}
    kept = tuples[starts].copy()
    for pair in np.flatnonzero(sizes > 1):
        rows = tuples[starts[pair] : starts[pair] + sizes[pair], -1]
        # JSON keeps {"a", "b"} and {"a b"} apart, and the kinds of the members
        text = json.dumps([tokens[v] for v in rows], ensure_ascii=False)
        if text not in ids:
            ids[text] = len(new_tokens)
            new_tokens.append(Term("set", text))
        kept[pair, -1] = ids[text]
    return new_tokens, kept
