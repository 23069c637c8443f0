"""Check certificates. Short, exact, and independent of how bounds are found.

Nothing of the search is imported here: this module, the data types of `capacity.rank.certificate`
and the triples of the database are all that has to be trusted. Each checker states why what it
checks proves the bound over the reals. D is the 0/1 tensor of the facts, all arithmetic is in
integers, in fractions, or modulo a prime where only "nonzero" is concluded.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import flint
import numpy as np
from numpy.typing import NDArray

from capacity.database.facts import Database
from capacity.database.tensor import component_labels
from capacity.errors import CertificateError
from capacity.rank.certificate import (
    Boxes,
    Certificate,
    Decomposition,
    Indices,
    Substitution,
    Unfolding,
)

# the indices of each mode that an argument is about
Touched: TypeAlias = tuple[Indices, Indices, Indices]


@dataclass(frozen=True)
class Verdict:
    """What a certificate proves.

    Attributes
    ----------
    proved : bool
    reason : str or None
        The step that fails, if it doesn't prove its bound.
    """

    proved: bool
    reason: str | None = None


class _Refuted(Exception):  # noqa: N818 - a verdict, not an error
    """A step of a certificate fails."""


def verify(certificate: Certificate, db: Database) -> Verdict:
    """Check that a certificate proves its bound for the facts of a database.

    Parameters
    ----------
    certificate : Certificate
    db : Database

    Returns
    -------
    Verdict

    Raises
    ------
    CertificateError
        If the certificate is for other facts or another policy.

    Notes
    -----
    *Lower bounds of the rank* add over arguments about different components. If D = A (+) B, an
    argument for A removes slices of A: moves of the game, or the r independent slices of an
    unfolding of rank r, each nonzero when its turn comes. The rank falls by one each time, and B
    stays as it is, for whatever is subtracted has an index of A in each of the other two modes.
    Two unfoldings may be about the same components if the slices that the first removes vanish on
    the indices of the second, and are none of them: its sub-tensor then stays as it is, too. An
    argument can be in one such pair; in longer chains what was subtracted first could come back.
    Restricting a tensor to a sub-tensor doesn't raise its rank.

    *Lower bounds of the effective rank* don't add: two token-disjoint databases can share terms in
    the unobserved fibers. They have one argument.

    *Upper bounds* add: D is a sum of simple tensors, one for each box and each term.
    """
    if certificate.facts_sha256 != db.facts_sha256 or certificate.multi != db.multi:
        raise CertificateError(
            f"The certificate must be for these facts, {db.facts_sha256[:12]} with multi="
            f"{db.multi}; it is for {certificate.facts_sha256[:12]} with multi="
            f"{certificate.multi}. Load the file that it was made from, under the same policy."
        )
    try:
        total = sum(argument.value for argument in certificate.arguments)
        _require(certificate.value == total, f"the arguments give {total}")
        if certificate.side == "upper":
            _check_upper(certificate, db)
        else:
            _check_lower(certificate, db)
    except _Refuted as refuted:
        return Verdict(False, str(refuted))
    return Verdict(True)


def _require(holds: object, otherwise: str) -> None:
    if not holds:
        raise _Refuted(otherwise)


def _check_lower(certificate: Certificate, db: Database) -> None:
    effective = certificate.quantity == "effective_rank"
    several = len(certificate.arguments) > 1
    _require(not (effective and several), "lower bounds of the effective rank do not add")
    touched: list[Touched] = []
    for argument in certificate.arguments:
        if isinstance(argument, Unfolding):
            touched.append(_check_unfolding(argument, db, effective))
        else:
            assert isinstance(argument, Substitution)
            touched.append(_check_substitution(argument, db, effective))
    about = [_components(t, db) for t in touched] if several else []
    paired: set[int] = set()
    for i, j in itertools.combinations(range(len(about)), 2):
        if about[i] & about[j]:
            first, second = certificate.arguments[i], certificate.arguments[j]
            _require(
                isinstance(first, Unfolding)
                and isinstance(second, Unfolding)
                and not paired & {i, j}
                and _leaves(first, touched[j], db),
                f"argument {i} may change what argument {j} is about",
            )
            paired |= {i, j}


def _leaves(argument: Unfolding, indices: Touched, db: Database) -> bool:
    """Whether the slices of an unfolding vanish on the sub-tensor of some indices."""
    chosen = [np.isin(np.arange(n), i) for n, i in zip(db.shape, indices, strict=True)]
    if chosen[argument.mode][argument.rows].any():
        return False
    chosen[argument.mode] = np.isin(np.arange(db.shape[argument.mode]), argument.rows)
    inside = [chosen[mode][db.triples[:, mode]] for mode in range(3)]
    return not (inside[0] & inside[1] & inside[2]).any()


def _components(touched: Touched, db: Database) -> set[int]:
    """Components that an argument is about."""
    labels = component_labels(db)
    found: set[int] = set()
    for mode in range(3):
        found.update(labels[np.isin(db.triples[:, mode], touched[mode])].tolist())
    return found


def _check_unfolding(argument: Unfolding, db: Database, effective: bool) -> Touched:
    """rank(D) >= the rank of an unfolding >= the size of a nonsingular minor.

    A sum of R simple tensors unfolds to a sum of R matrices of rank one. The determinant of the
    minor expands along a row, or a column, with one entry among those that are left, which leaves
    that entry times a smaller determinant; at last along diagonal blocks with zeros below them,
    each nonsingular modulo a prime, hence nonsingular. For the effective rank the mode is 2 and the
    columns are observed fibers: every representing tensor has the same entries there.
    """
    mode, r = argument.mode, argument.value
    _require(mode in (0, 1, 2), "there is no such mode")
    _require(not effective or mode == 2, "only the object unfolding bounds the effective rank")
    _require(r > 0 and len(argument.columns) == r, "a minor must be square")
    others = [m for m in range(3) if m != mode]
    row_at = _positions(argument.rows, db.shape[mode])
    width = db.shape[others[1]]
    flat = argument.columns[:, 0] * width + argument.columns[:, 1]
    _require((argument.columns < [db.shape[m] for m in others]).all(), "an index is out of range")
    triples = db.triples.astype(np.int64)
    entries = triples[:, others[0]] * width + triples[:, others[1]]
    order = np.argsort(flat)
    _require((np.diff(flat[order]) > 0).all(), "a column is used twice")
    # places (i, j) of the ones of the minor
    near = np.searchsorted(flat, entries, sorter=order).clip(max=r - 1)
    inside = flat[order[near]] == entries
    inside &= row_at[triples[:, mode]] >= 0
    i, j = row_at[triples[inside, mode]], order[near[inside]]
    t = r - int(argument.blocks.sum())
    _require(t >= 0, "the blocks are larger than the minor")
    diagonal, row_goes_on, column_goes_on = (np.zeros(r, bool) for _ in range(3))
    diagonal[i[i == j]] = True
    row_goes_on[i[i < j]] = True
    column_goes_on[j[j < i]] = True
    _require(diagonal[:t].all(), "a pivot is zero")
    _require(not (row_goes_on & column_goes_on)[:t].any(), "a pivot is not alone")
    _check_blocks(i, j, np.append(t, t + np.cumsum(argument.blocks)), argument.prime)
    touched = [np.zeros(0, np.int64)] * 3
    touched[mode] = argument.rows
    touched[others[0]], touched[others[1]] = argument.columns.T
    return touched[0], touched[1], touched[2]


def _check_blocks(i: Indices, j: Indices, bounds: Indices, prime: int) -> None:
    """Diagonal blocks between the bounds are nonsingular, and zeros stand below them."""
    if len(bounds) == 1:
        return
    _require(2 <= prime < 2**63 and flint.fmpz(prime).is_prime(), "the modulus is no prime")
    block_i, block_j = (np.searchsorted(bounds, x, side="right") for x in (i, j))
    _require(not ((block_i > block_j) & (block_j > 0)).any(), "an entry stands below the blocks")
    for number, (start, stop) in enumerate(itertools.pairwise(bounds.tolist()), start=1):
        n = stop - start
        dense = np.zeros((n, n), np.int64)
        inside = (block_i == number) & (block_j == number)
        dense[i[inside] - start, j[inside] - start] = 1
        rank = flint.nmod_mat(n, n, dense.ravel().tolist(), prime).rank()
        _require(rank == n, f"block {number} has rank {rank} of {n} modulo the prime")


def _positions(indices: Indices, n: int) -> Indices:
    """Where each index stands in a list of distinct ones; -1 for the others."""
    _require(len(indices) == 0 or (indices.min() >= 0 and indices.max() < n), "index out of range")
    at = np.full(n, -1, np.int64)
    at[indices] = np.arange(len(indices))
    _require((at >= 0).sum() == len(indices), "a row is used twice")
    return at


def _check_substitution(argument: Substitution, db: Database, effective: bool) -> Touched:
    """Each move removes a slice and lowers the rank by at least one.

    Let T be a sum of R simple tensors a_r (x) b_r (x) c_r, and let its slice T_i, of mode 0 say, be
    nonzero: it is, since an entry of it is known and nonzero. Then some a_r[i] is nonzero. Subtract
    a_r[j] / a_r[i] times T_i from every other slice T_j: term r vanishes from all of them, so the
    slices without T_i are a tensor of rank at most R - 1. The multiples aren't known, so what was
    subtracted hides the entries of T_j wherever T_i isn't known to be zero; the others are as they
    were. For the effective rank the unobserved fibers are hidden from the start.
    """
    values = db.to_numpy(np.bool_)
    known = np.ones(db.shape, bool)
    if effective:
        known[~values.any(axis=2)] = False
    alive = [np.ones(n, bool) for n in db.shape]
    for step, (mode, index) in enumerate(argument.moves.tolist()):
        where = f"move {step}, slice {index} of mode {mode}"
        _require(mode in (0, 1, 2) and index < db.shape[mode], f"{where}: there is none")
        _require(alive[mode][index], f"{where}: it was removed before")
        a, b = (m for m in range(3) if m != mode)
        slice_known, slice_value = known.take(index, mode), values.take(index, mode)
        live = alive[a][:, None] & alive[b][None, :]
        _require((slice_known & slice_value & live).any(), f"{where}: it isn't known to be nonzero")
        alive[mode][index] = False
        hidden = ~slice_known | slice_value
        known &= ~np.expand_dims(hidden, mode)
    moves = argument.moves
    touched = [moves[moves[:, 0] == mode, 1] for mode in range(3)]
    return touched[0], touched[1], touched[2]


def _check_upper(certificate: Certificate, db: Database) -> None:
    """D, or a tensor that represents the facts, is a sum of so many simple tensors.

    Each fact is given once: by the terms, added up exactly, or by its box. A box is the simple
    tensor of the indicators of its subjects, predicates and objects; it gives each fact of its own
    and nothing else if those are as many as its triples. For the effective rank only the observed
    fibers have to agree, so triples of a box that lie in unobserved ones don't count.
    """
    effective = certificate.quantity == "effective_rank"
    given = np.zeros(db.n_triples, np.int64)
    for argument in certificate.arguments:
        if isinstance(argument, Decomposition):
            given += _facts_of_terms(argument, db, effective)
        else:
            assert isinstance(argument, Boxes)
            given += _facts_of_boxes(argument, db, effective)
    wrong = np.flatnonzero(given != 1)
    _require(not len(wrong), f"fact {wrong[:1]} is not given once")


def _facts_of_boxes(argument: Boxes, db: Database, effective: bool) -> NDArray[np.bool_]:
    """Check that each box holds its own facts, and no other triple that counts."""
    _require(len(argument.box) == db.n_triples, "there must be a box, or -1, for each fact")
    inside = argument.box >= 0
    number, box = np.unique(argument.box[inside], return_inverse=True)
    facts = db.triples[inside].astype(np.int64)
    sides = np.ones(len(number), dtype=object)
    for mode in range(3):
        pairs = np.unique(np.stack([box.ravel(), facts[:, mode]], axis=1), axis=0)
        # Python integers: a product of three sides can pass 2^63
        sides *= np.bincount(pairs[:, 0], minlength=len(number)).astype(object)
    sizes = np.bincount(box.ravel(), minlength=len(number))
    for other in np.flatnonzero(sides != sizes):
        _require(effective, f"box {number[other]} holds {sizes[other]} of {sides[other]} triples")
        mine = facts[box.ravel() == other]
        own = {(k, q, v) for k, q, v in mine.tolist()}
        observed = {(k, q) for k, q, _ in db.triples.tolist()}
        ks, qs, vs = (set(mine[:, mode].tolist()) for mode in range(3))
        for triple in itertools.product(ks, qs, vs):
            _require(
                triple in own or triple[:2] not in observed,
                f"box {number[other]} gives {triple}, which isn't among its facts",
            )
    return inside


def _facts_of_terms(argument: Decomposition, db: Database, effective: bool) -> NDArray[np.bool_]:
    """Add the terms up; what they give must be 1 at some facts and 0 elsewhere."""
    total: defaultdict[tuple[int, int, int], Fraction] = defaultdict(Fraction)
    for number, term in enumerate(argument.terms):
        for (indices, _), n in zip(term, db.shape, strict=True):
            _require(all(0 <= i < n for i in indices), f"term {number} has an index out of range")
        (ks, a), (qs, b), (vs, c) = term
        for k, x in zip(ks, a, strict=True):
            for q, y in zip(qs, b, strict=True):
                for v, z in zip(vs, c, strict=True):
                    total[k, q, v] += x * y * z
    fact = {tuple(row): n for n, row in enumerate(db.triples.tolist())}
    observed = {row[:2] for row in fact}
    given = np.zeros(db.n_triples, bool)
    for place, x in total.items():
        if x == 0 or (effective and place[:2] not in observed):
            continue
        _require(place in fact and x == 1, f"the terms give {x} at {place}")
        given[fact[place]] = True
    return given
