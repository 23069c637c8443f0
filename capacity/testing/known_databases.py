"""Databases whose rank, or effective rank, is known by a theorem."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import flint
import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from capacity.database.facts import Database
from capacity.display import briefly_shown
from capacity.tensor.structure import is_complete
from capacity.testing.choices import Choices
from capacity.testing.known_blocks import Block, Place, thick, thin

Dense = NDArray[np.int64]


@briefly_shown
@dataclass(frozen=True)
class KnownDatabase:
    """A database whose rank over the reals is known.

    Attributes
    ----------
    database : Database
        The facts.
    rank : int
        Rank over the reals.
    effective_rank : int or None
        Effective rank over the reals; None where no theorem proves it.
    why : str
        The theorems.
    """

    database: Database
    rank: int
    effective_rank: int | None
    why: str


@briefly_shown
@dataclass(frozen=True)
class KnownEffectiveRank:
    """A database whose effective rank over the reals is known.

    Attributes
    ----------
    database : Database
        The facts.
    effective_rank : int
        Effective rank over the reals.
    rank : int or None
        Rank over the reals; None where no theorem proves it.
    why : str
        The theorems.
    """

    database: Database
    effective_rank: int
    rank: int | None
    why: str


@st.composite
def databases_of_known_rank(draw: st.DrawFn) -> KnownDatabase:
    """Draw databases whose rank over R is a theorem, and the effective rank where that is one.

    Their tensors are direct sums in which all blocks but one have a side of one or two: there the
    rank is additive (Jaja, Takche 1986). Blocks are matrices, pencils composed of Kronecker blocks,
    and multiplications of polynomials, of algebras and of matrices. Tokens are shuffled, modes
    exchanged, and slices added that are copies or sums of others; none of this changes the rank.

    Returns
    -------
    SearchStrategy of KnownDatabase
        Databases with their ranks and the theorems.

    Examples
    --------
    >>> from hypothesis import find
    >>> known = find(databases_of_known_rank(), lambda known: "x^2 - 1" in known.why)
    >>> known.database.n_triples, known.rank
    (4, 2)
    """
    return known_rank(Choices.drawn(draw))


@st.composite
def databases_of_known_effective_rank(draw: st.DrawFn) -> KnownEffectiveRank:
    """Draw databases whose effective rank over R is a theorem, and the rank where that is one.

    * All pairs are observed: the effective rank is the rank. It doesn't change if a subject is
      added that has, for some predicates, just the facts of another subject, since a copy of that
      subject's slice represents the new facts; nor if a predicate is added in the same way.
    * Each subject has one predicate (as in Example 2.4 of Wong 2025). With M the matrix of subjects
      and objects, the observed columns of the object unfolding are those of its transpose, and M
      for every predicate represents the facts: the effective rank is the rank of M. The same holds
      if each predicate has one subject.
    * The rank is that of the object unfolding, which bounds the effective rank from below.

    Returns
    -------
    SearchStrategy of KnownEffectiveRank
        Databases with their effective ranks and the theorems.

    Examples
    --------
    >>> from hypothesis import find
    >>> known = find(databases_of_known_effective_rank(), lambda known: known.rank == 2)
    >>> known.effective_rank in (1, 2)
    True
    """
    return known_effective_rank(Choices.drawn(draw))


def known_rank(choose: Choices) -> KnownDatabase:
    """Draw from `databases_of_known_rank` by given choices."""
    blocks = [thin(choose) for _ in range(choose.integer(0, 2))]
    if not blocks or choose.chance(1, 2):
        blocks.append(thick(choose))
    rank = sum(block.rank for block in blocks)
    why = "; ".join(block.why for block in blocks)
    if len(blocks) > 1:
        why += "; additive, Jaja and Takche 1986"
    dense = _with_more_slices(choose, _direct_sum(choose, blocks))
    db = _database(choose, dense)
    same = is_complete(db.tensor()) or _rank(dense.reshape(-1, dense.shape[2])) == rank
    return KnownDatabase(db, rank, rank if same else None, why)


def _direct_sum(choose: Choices, blocks: Iterable[Block]) -> Dense:
    """Direct sum of blocks, each with its modes permuted."""
    dense = np.zeros((0, 0, 0), np.int64)
    for block in blocks:
        part = np.transpose(_dense(block.places), choose.order(range(3)))
        joined = np.zeros(np.add(dense.shape, part.shape), np.int64)
        joined[tuple(slice(n) for n in dense.shape)] = dense
        joined[tuple(slice(n, None) for n in dense.shape)] = part
        dense = joined
    return dense


def _dense(places: Iterable[Place]) -> Dense:
    at = np.array(list(places), np.int64)
    dense = np.zeros(at.max(axis=0) + 1, np.int64)
    dense[tuple(at.T)] = 1
    return dense


def _with_more_slices(choose: Choices, dense: Dense) -> Dense:
    """Add slices that are copies of others, or sums of two that have no fact in common."""
    for _ in range(choose.integer(0, 2)):
        mode = choose.integer(0, 2)
        slices = np.moveaxis(dense, mode, 0)
        i, j = choose.integer(0, len(slices) - 1), choose.integer(0, len(slices) - 1)
        more = slices[i]
        if not (slices[i] & slices[j]).any():
            more = slices[i] + slices[j]
        dense = np.moveaxis(np.concatenate([slices, more[None]]), 0, mode)
    return dense


def known_effective_rank(choose: Choices) -> KnownEffectiveRank:
    """Draw from `databases_of_known_effective_rank` by given choices."""
    match choose.integer(0, 3):
        case 0:
            return _one_predicate_a_subject(choose)
        case 1:
            known = known_rank(choose)
            if known.effective_rank is not None:
                return KnownEffectiveRank(
                    known.database, known.effective_rank, known.rank, known.why
                )
    block = thick(choose) if choose.chance(1, 2) else thin(choose)
    whole = _dense(block.places)
    complete = [
        turned
        for order in choose.order([(0, 1, 2), (1, 2, 0), (2, 0, 1)])
        if (turned := np.transpose(whole, order)).any(axis=2).all()
    ]
    if not complete:
        return _one_predicate_a_subject(choose)
    dense = complete[0].swapaxes(0, 1) if choose.chance(1, 2) else complete[0]
    dense = _with_more_slices(choose, dense)
    why = f"{block.why}; all pairs are observed"
    if not choose.chance(1, 2) or not dense.any(axis=2).all():
        return KnownEffectiveRank(_database(choose, dense), block.rank, block.rank, why)
    for _ in range(choose.integer(1, 3)):
        mode = choose.integer(0, 1)
        slices = np.moveaxis(dense, mode, 0)
        copied = slices[choose.integer(0, len(slices) - 1)].copy()
        kept = choose.some(np.flatnonzero(copied.any(axis=1)).tolist())
        copied[np.setdiff1d(np.arange(len(copied)), kept)] = 0
        dense = np.moveaxis(np.concatenate([slices, copied[None]]), 0, mode)
    why += " but for parts of copies"
    return KnownEffectiveRank(_database(choose, dense), block.rank, None, why)


def _one_predicate_a_subject(choose: Choices) -> KnownEffectiveRank:
    n_subjects, n_predicates = choose.integer(1, 6), choose.integer(1, 4)
    n_objects = choose.integer(1, 4)
    of = [choose.integer(0, n_predicates - 1) for _ in range(n_subjects)]
    M = np.array(
        [[choose.integer(0, 1) for _ in range(n_objects)] for _ in range(n_subjects)], np.int64
    )
    M[~M.any(axis=1), 0] = 1
    dense = np.zeros((n_subjects, n_predicates, n_objects), np.int64)
    dense[np.arange(n_subjects), of] = M
    # the subject unfolding is block diagonal, with a block for each predicate, so its rank is the
    # sum of the blocks'; as many terms suffice, slice by slice
    rank = sum(_rank(M[np.array(of) == q]) for q in set(of))
    if choose.chance(1, 2):
        dense = dense.swapaxes(0, 1)
    why = "one predicate per subject, or one subject per predicate: the rank of a matrix"
    return KnownEffectiveRank(_database(choose, dense), _rank(M), rank, why)


def _rank(matrix: Dense) -> int:
    m, n = matrix.shape
    return flint.fmpz_mat(m, n, matrix.ravel().tolist()).rank()


def _database(choose: Choices, dense: Dense) -> Database:
    """Make a database of a tensor, with tokens in any order."""
    order = [choose.order(range(n)) for n in dense.shape]
    rows = [
        tuple(f"{role}{of[i]}" for role, of, i in zip("kqv", order, place, strict=True))
        for place in np.argwhere(dense).tolist()
    ]
    return Database.from_triples(rows, multi="keep")
