"""Databases from rows of names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from capacity.database.canonical import numbered
from capacity.database.policy import MultiPolicy
from capacity.database.tensor import WithTensor
from capacity.database.terms.term import Term


class FromRows(WithTensor, ABC):
    """The part of `Database` that makes one from rows of names."""

    @classmethod
    @abstractmethod
    def from_ids(
        cls,
        tokens: Sequence[Term],
        id_tuples: NDArray[np.integer],
        *,
        arity: int = 3,
        multi: MultiPolicy | None = None,
    ) -> Self:
        """Make a database from distinct terms and tuples of their indices."""

    @classmethod
    def from_triples(
        cls, triples: Iterable[Sequence[object]], *, multi: MultiPolicy | None = None
    ) -> Self:
        """Make a database from (subject, predicate, object) rows.

        Parameters
        ----------
        triples : iterable of 3-sequences
            Each cell a str (a plain label), a `Term`, or an rdflib node.
        multi : MultiPolicy, optional
            By default ``keep``, with a `MultiValuedWarning` if there are multi-valued pairs.

        Raises
        ------
        InvalidArgumentError
            For a row that doesn't hold three cells, no row at all, or an unknown policy.
        InvalidTypeError
            For a cell of another type.
        MultiValuedError
            Under the policy ``error``, or if a policy leaves no fact.
        """
        return cls.from_ids(*numbered(triples, 3), multi=multi)

    @classmethod
    def from_tuples(
        cls, rows: Iterable[Sequence[object]], *, multi: MultiPolicy | None = None
    ) -> Self:
        """Make a database from rows of any one length, the arity: a key and its object.

        Parameters
        ----------
        rows : iterable of sequences
            Rows of the same length, from 2 to 32; the last cell is the object, the others are the
            key. Each cell a str (a plain label), a `Term`, or an rdflib node.
        multi : MultiPolicy, optional
            By default ``keep``, with a `MultiValuedWarning` if there are multi-valued keys.

        Raises
        ------
        InvalidArgumentError
            For a row of another length than the first, no row at all, an unknown policy, or one
            that needs predicates for rows of another length than 3.
        InvalidTypeError
            For a cell of another type.
        MultiValuedError
            Under the policy ``error``, or if a policy leaves no fact.

        Examples
        --------
        >>> from capacity import Database
        >>> sums = Database.from_tuples([("0", "1", "1", "even"), ("1", "1", "1", "odd")])
        >>> sums
        Database(2 facts of arity 4: 2 x 1 x 1 x 2, 4 tokens; functional)
        >>> str(sums("1", "1", "1"))
        'odd'
        """
        tokens, tuples = numbered(rows, None)
        # without rows there is no arity, and `from_ids` says so
        arity = tuples.shape[1] if len(tuples) else 3
        return cls.from_ids(tokens, tuples, arity=arity, multi=multi)
