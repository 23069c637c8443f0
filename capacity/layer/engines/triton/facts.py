"""Facts of many databases as the arrays of the kernel, without a loop over databases.

Facts of all databases stand one after the other, and a token's number is counted on from those of
the databases before, so that one sort, sum or count serves all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capacity.database.facts import Database

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Ragged:
    """Lists of several lengths, one for each database, in one array.

    Attributes
    ----------
    values : (total length,)
        The lists one after the other.
    lengths : (databases,)
        Length of each.
    """

    values: NDArray[Any]
    lengths: Integers

    @property
    def starts(self) -> Integers:
        """Where each list begins."""
        return np.cumsum(self.lengths) - self.lengths

    @property
    def owners(self) -> Integers:
        """Number of the database of each value."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @property
    def places(self) -> Integers:
        """Place of each value in its own list."""
        return np.arange(len(self.values)) - np.repeat(self.starts, self.lengths)

    def padded(self) -> NDArray[Any]:
        """Return the lists as rows of one array, followed by zeros."""
        rows = np.zeros((len(self.lengths), self.lengths.max(initial=0)), self.values.dtype)
        rows[self.owners, self.places] = self.values
        return rows

    def then(self, other: Ragged) -> Ragged:
        """Put the other's list of each database behind this one's."""
        order = np.argsort(np.concatenate([self.owners, other.owners]), kind="stable")
        values = np.concatenate([self.values, other.values])[order]
        return Ragged(values, self.lengths + other.lengths)


@dataclass(frozen=True)
class Facts:
    """Facts of databases as rows, and the number of each token.

    Tokens that are a subject or a predicate come first, those with the most rows before others, so
    that the tokens of a block have similar numbers of rows. Rows are one for each distinct subject,
    if predicates are learnt, which has the subject twice; then the facts.

    Attributes
    ----------
    numbers : Ragged
        Number of each token.
    n_rows, n_active, n_facts : (databases,)
        Numbers of rows, of tokens that are a subject or a predicate, and of facts.
    arrays : dict of str to Ragged
        By the names of the kernel's arguments: ``subjects`` and ``predicates``, the numbers of each
        row's tokens; ``weights`` of rows in the loss; ``targets``, the numbers of the tokens that
        rows must predict, row by row and all alike, and ``target_starts``, where each row's begin
        and the last one's end; ``subject_rows`` and ``predicate_rows``, the rows of each active
        token, and ``subject_starts`` and ``predicate_starts``, where each token's begin.
    """

    numbers: Ragged
    n_rows: Integers
    n_active: Integers
    n_facts: Integers
    arrays: dict[str, Ragged]

    @classmethod
    def of(cls, databases: Sequence[Database], *, both: bool) -> Facts:
        """Number tokens and rows; with `both`, predicates are learnt too."""
        triples = [db.token_triples for db in databases]
        n_facts = np.array([len(one) for one in triples])
        n_tokens = np.array([db.n_tokens for db in databases])
        # tokens counted on, from database to database
        first_token = np.cumsum(n_tokens) - n_tokens
        k, q, v = (np.concatenate(triples) + np.repeat(first_token, n_facts)[:, None]).T
        owner = np.repeat(np.arange(len(databases)), n_tokens)

        def of_facts(values: NDArray[Any]) -> Ragged:
            return Ragged(values, n_facts)

        distinct = np.unique(k) if both else k[:0]
        n_first = np.bincount(owner[distinct], minlength=len(databases))
        first = Ragged(distinct, n_first)
        subjects, predicates = first.then(of_facts(k)), first.then(of_facts(q))
        n_rows = subjects.lengths
        uses = [np.bincount(x.values, minlength=len(owner)) for x in (subjects, predicates)]
        counts = uses[0] + uses[1]
        order = np.lexsort((-counts, owner))
        number = np.empty_like(order)
        number[order] = np.arange(len(order)) - np.repeat(first_token, n_tokens)
        n_active = np.bincount(owner[counts > 0], minlength=len(databases))
        # a subject's row must predict the predicates of its facts, which differ
        n_targets = Ragged(np.bincount(k, minlength=len(owner))[distinct], n_first).then(
            of_facts(np.ones_like(k))
        )
        after = q[np.argsort(k, kind="stable")] if both else q[:0]
        n_after = n_facts if both else 0 * n_facts
        share = np.repeat((0.5 if both else 1.0) / n_facts, n_rows)
        arrays = {
            "subjects": Ragged(number[subjects.values], n_rows),
            "predicates": Ragged(number[predicates.values], n_rows),
            "weights": Ragged((share * n_targets.values).astype(np.float32), n_rows),
            "target_starts": _starts(n_targets),
            "targets": Ragged(number[after], n_after).then(of_facts(number[v])),
        }
        # active tokens in the order of their numbers
        active = order[counts[order] > 0]
        for name, tokens, used in zip(
            ("subject", "predicate"), (subjects, predicates), uses, strict=True
        ):
            # its number, counted on, is a token's place in `order`
            place = number[tokens.values] + np.repeat(first_token, n_rows)
            rows = np.argsort(place, kind="stable")
            arrays[f"{name}_rows"] = Ragged(rows - np.repeat(tokens.starts, n_rows), n_rows)
            arrays[f"{name}_starts"] = _starts(Ragged(used[active], n_active))
        return cls(Ragged(number, n_tokens), n_rows, n_active, n_facts, arrays)


def _starts(counts: Ragged) -> Ragged:
    """List where each part begins, and where the last one ends, for each database."""
    ends = np.cumsum(counts.values) - np.repeat(_before(counts), counts.lengths)
    zero = Ragged(np.zeros(len(counts.lengths), np.int64), np.ones_like(counts.lengths))
    return zero.then(Ragged(ends, counts.lengths))


def _before(counts: Ragged) -> Integers:
    """Sum of the counts of all databases before each one."""
    sums = np.concatenate([[0], np.cumsum(counts.values)])
    return sums[counts.starts]
