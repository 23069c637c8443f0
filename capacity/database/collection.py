"""A database as a collection of facts: which are in it, parts of it, noise, and sets of two.

Facts are compared as `Database.__eq__` compares them: terms by what they are, blank nodes by their
names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from capacity.checks import Seed, generator, require_integer, shown
from capacity.database.arity import role_names
from capacity.database.choosing.lookup import positions
from capacity.database.terms.term import Ids, Term
from capacity.errors import InvalidArgumentError, InvalidTypeError

if TYPE_CHECKING:
    from capacity.database.facts import Database


def each_fact(db: Database) -> Iterator[tuple[Term, ...]]:
    """Yield the facts in their order, each as its terms."""
    tokens = tuple(db.tokens)
    for row in db.token_tuples.tolist():
        yield tuple(tokens[i] for i in row)


def holds(db: Database, fact: object) -> bool:
    """Return whether a fact is in a database; a str denotes what it names, as in a lookup.

    Raises
    ------
    InvalidTypeError
        For what isn't a fact: a tuple or a list with a cell for each column.
    """
    if not isinstance(fact, tuple | list) or len(fact) != db.arity:
        raise InvalidTypeError(
            f"A fact of this database is a tuple of {', '.join(role_names(db.arity))}; got "
            f"{shown(fact)}."
        )
    there = np.ones(db.n_facts, bool)
    for mode, cell in enumerate(fact):
        if not there.any():
            return False
        at = positions(cell, db.roles[mode], db.prefixes, lambda: db.labels)
        there &= np.isin(db.tuples[:, mode], at)
    return bool(there.any())


def at(db: Database, key: Any) -> tuple[Term, ...] | Database:
    """Return the fact at a number, or the facts of a slice, of numbers, or of a mask.

    Facts are a set: those of several numbers come in their own order, each once.

    Raises
    ------
    InvalidArgumentError
        For a number that no fact has.
    InvalidTypeError
        For another key.
    """
    n = db.n_facts
    if isinstance(key, int | np.integer) and not isinstance(key, bool):
        number = int(key)
        if not -n <= number < n:
            raise InvalidArgumentError(
                f"The facts of this database are numbered from 0 to {n - 1}; got {number}."
            )
        return tuple(db.tokens[i] for i in db.token_tuples[number].tolist())
    if isinstance(key, slice):
        return part(db, np.arange(n)[key])
    chosen = np.asarray(key) if isinstance(key, list) or hasattr(key, "__array__") else None
    if chosen is not None and not chosen.size:
        chosen = chosen.astype(np.int64)
    if chosen is None or chosen.dtype.kind not in "biu" or chosen.ndim != 1:
        raise InvalidTypeError(
            "Facts are chosen by a number, a slice, or an array of numbers or truth values; got "
            f"{shown(key)}. By names they are chosen by db.select(predicates=...), and an object "
            "is looked up by db(subject, predicate)."
        )
    fits = len(chosen) == n if chosen.dtype.kind == "b" else ((chosen >= -n) & (chosen < n)).all()
    if not fits:
        raise InvalidArgumentError(
            f"The facts of this database are numbered from 0 to {n - 1}; got {shown(key)}."
        )
    return part(db, chosen)


def part(db: Database, rows: NDArray[Any]) -> Database:
    """Keep the facts at some rows, of which there may be none."""
    made = db.from_ids(
        db.tokens, db.token_tuples[rows], arity=db.arity, multi=db.multi, prefixes=db.prefixes,
        allow_empty=True,
    )  # fmt: skip
    return replace(made, source=db.source)


def sampled(db: Database, n: int, seed: Seed) -> Database:
    """Keep facts that are drawn at random without replacement."""
    if not db.n_facts:
        raise InvalidArgumentError("There must be facts to draw from; the database has none.")
    n = require_integer("n", n, most=db.n_facts)
    return part(db, np.sort(generator(seed).choice(db.n_facts, n, replace=False)))


def with_other_objects(db: Database, share: float, seed: Seed) -> Database:
    """Draw other objects for a share of the facts (`Database.with_noise`)."""
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise InvalidArgumentError(
            f"`share` must be the share of facts that get another object, from 0 to 1; got "
            f"{shown(share)}."
        )
    n, n_objects = round(share * db.n_facts), db.shape[-1]
    if n and n_objects < 2:
        raise InvalidArgumentError(
            "Facts can get another object only if there are two or more objects; this database has "
            f"{n_objects}."
        )
    rng = generator(seed)
    rows = rng.choice(db.n_facts, n, replace=False)
    tuples = db.tuples.astype(np.int64)
    # one of the others, each as likely
    tuples[rows, -1] = (tuples[rows, -1] + rng.integers(1, max(n_objects, 2), n)) % n_objects
    ids = np.stack([of[tuples[:, mode]] for mode, of in enumerate(db.role_ids)], axis=1)
    return db.from_ids(
        db.tokens, ids, arity=db.arity, multi="keep", prefixes=db.prefixes, allow_empty=True
    )


def union(a: Database, b: Database) -> Database:
    """Return the facts of either of two databases, multi-valued pairs kept."""
    tokens, mine, its = _numbered(a, b)
    return _of(a, b, tokens, np.concatenate([mine, its]))


def intersection(a: Database, b: Database) -> Database:
    """Return the facts that are in both of two databases."""
    tokens, mine, its = _numbered(a, b)
    both = {tuple(row) for row in its.tolist()}
    rows = [row for row in mine.tolist() if tuple(row) in both]
    return _of(a, b, tokens, np.array(rows, np.int64).reshape(-1, a.arity))


def _numbered(a: Database, b: Database) -> tuple[list[Term], NDArray[np.int64], NDArray[np.int64]]:
    """Number the terms of both, and the facts of each by these numbers.

    Raises
    ------
    InvalidArgumentError
        For facts of two arities, and for blank nodes that have one name in two files, or in a file
        and in facts of none.
    """
    if a.arity != b.arity:
        raise InvalidArgumentError(
            f"Facts of two databases must have one arity; got {a.arity} and {b.arity}."
        )
    # without a source they may have been made together, under names that mean one node
    if a.source != b.source:
        blank = [{one for one in db.tokens if one.kind == "blank"} for db in (a, b)]
        shared = reduce(set.intersection, blank)
        if shared:
            raise InvalidArgumentError(
                f"The blank nodes of two files are never the same, and both have "
                f"{min(shared)}. Load the files together: capacity.load([path, other]), or rename "
                "the nodes of one."
            )
    ids = Ids()
    numbers = [np.array([ids[token] for token in db.tokens], np.int64) for db in (a, b)]
    mine, its = (
        number[db.token_tuples] if db.n_facts else np.zeros((0, db.arity), np.int64)
        for number, db in zip(numbers, (a, b), strict=True)
    )
    return list(ids), mine, its


def _of(a: Database, b: Database, tokens: list[Term], rows: NDArray[np.int64]) -> Database:
    return a.from_ids(
        tokens, rows, arity=a.arity, multi="keep", prefixes={**b.prefixes, **a.prefixes},
        allow_empty=True,
    )  # fmt: skip
