"""A second, slower checker of certificates: dense, in fractions, by definitions alone."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np

from capacity.database import Database
from capacity.rank import Boxes, Certificate, Decomposition, Koszul, Substitution, Unfolding


def rational_rank(matrix: list[list[Fraction]]) -> int:
    rows, rank = [row[:] for row in matrix], 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for i in range(rank + 1, len(rows)):
            factor = rows[i][column] / rows[rank][column]
            rows[i] = [x - factor * y for x, y in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank


def second_checker(certificate: Certificate, db: Database) -> bool:
    """Whether the arguments prove the value, by definitions alone."""
    if (certificate.facts_sha256, certificate.multi) != (db.facts_sha256, db.multi):
        return False
    D = db.to_numpy().astype(int)
    observed = np.asarray(D.any(axis=2))
    effective = certificate.quantity == "effective_rank"
    if certificate.value != sum(a.value for a in certificate.arguments):
        return False
    try:
        if certificate.side == "upper":
            return _adds_up(certificate, db, D, observed, effective)
        if effective and len(certificate.arguments) > 1:
            return False
        touched = [_proves_lower(a, D, observed, effective) for a in certificate.arguments]
    except IndexError:
        return False
    if any(t is None for t in touched):
        return False
    if sum(isinstance(a, Koszul) for a in certificate.arguments) > 1:
        return False
    names = _component_names(db)
    parts = [{names[vertex] for vertex in t or ()} for t in touched]
    meeting = [p for p in itertools.combinations(range(len(parts)), 2) if parts[p[0]] & parts[p[1]]]
    if len({i for pair in meeting for i in pair}) < 2 * len(meeting):
        return False  # an argument meets two others
    pairs = [(certificate.arguments[i], certificate.arguments[j], touched[j]) for i, j in meeting]
    return all(
        isinstance(first, Unfolding)
        and isinstance(second, Unfolding)
        and _vanishes(first, indices or set(), D)
        for first, second, indices in pairs
    )


def _vanishes(first: Unfolding, later: set[tuple[int, int]], D: np.ndarray) -> bool:
    """Whether what is removed first is zero at, and no index of, what the later one is about."""
    sides = [sorted(x for m, x in later if m == mode) for mode in range(3)]
    removed = first.rows.tolist()
    if set(removed) & set(sides[first.mode]):
        return False
    sides[first.mode] = removed
    return not D[np.ix_(*sides)].any()


def _component_names(db: Database) -> dict[tuple[int, int], int]:
    name = {(m, i): 100 * m + i for m in range(3) for i in range(db.shape[m])}
    for _ in range(sum(db.shape)):
        for row in db.triples.tolist():
            least = min(name[m, i] for m, i in enumerate(row))
            name |= dict.fromkeys(enumerate(row), least)
    return name


def _proves_lower(
    argument: Any, D: np.ndarray, observed: np.ndarray, effective: bool
) -> set[tuple[int, int]] | None:
    if isinstance(argument, Unfolding):
        if argument.mode not in (0, 1, 2) or (effective and argument.mode != 2):
            return None
        others = [m for m in range(3) if m != argument.mode]
        T = np.moveaxis(D, argument.mode, 0)
        rows, columns = argument.rows.tolist(), [tuple(c) for c in argument.columns.tolist()]
        if len(set(rows)) < len(rows) or len(set(columns)) != len(columns) or not rows:
            return None
        if len(rows) != len(columns):
            return None
        minor = [[Fraction(int(T[i, a, b])) for a, b in columns] for i in rows]
        if rational_rank(minor) < len(rows):
            return None
        return {(argument.mode, i) for i in rows} | {
            (others[s], c[s]) for c in columns for s in (0, 1)
        }
    if isinstance(argument, Koszul):
        return None if effective else _proves_flattening(argument, D)
    assert isinstance(argument, Substitution)
    state: dict[tuple[int, ...], int | None] = {
        place: None if effective and not observed[place[0], place[1]] else int(D[place])
        for place in np.ndindex(*D.shape)
    }
    for mode, index in argument.moves.tolist():
        if mode not in (0, 1, 2):
            return None
        mine = {p: x for p, x in state.items() if p[mode] == index}
        if not any(x for x in mine.values()):
            return None
        state = {p: x for p, x in state.items() if p[mode] != index}
        for p in state:
            across = mine[(*p[:mode], index, *p[mode + 1 :])]
            if across is None or across != 0:
                state[p] = None
    return {(m, i) for m, i in argument.moves.tolist()}


def _proves_flattening(argument: Koszul, D: np.ndarray) -> set[tuple[int, int]] | None:
    """By exterior products of basis vectors, written as sorted tuples with signs."""
    indices = [argument.subjects.tolist(), argument.predicates.tolist(), argument.objects.tolist()]
    if any(len(set(i)) < len(i) for i in indices) or argument.mode not in (0, 1, 2):
        return None
    T = np.moveaxis(D[np.ix_(*indices)], argument.mode, 0)
    n = len(argument.projection)
    if n % 2 == 0 or argument.projection.shape[1] != len(T):
        return None
    X = np.tensordot(argument.projection, T, axes=1).tolist()
    p, b, c = n // 2, T.shape[1], T.shape[2]
    subsets = list(itertools.combinations(range(n), p))
    targets = list(itertools.combinations(range(n), p + 1))
    matrix: list[list[Fraction]] = []
    for subset, j in itertools.product(subsets, range(b)):
        image = {(u, k): Fraction(0) for u in targets for k in range(c)}
        for i, k in itertools.product(range(n), range(c)):
            word = [i, *subset]
            if len(set(word)) == p + 1:
                swaps = sum(x > y for x, y in itertools.combinations(word, 2))
                image[tuple(sorted(word)), k] += (-1) ** swaps * X[i][j][k]
        matrix.append(list(image.values()))
    # a simple tensor has rank C(2p, p)
    if argument.value > -(-rational_rank(matrix) // math.comb(2 * p, p)):
        return None
    return {(m, i) for m in range(3) for i in indices[m]}


def _adds_up(
    certificate: Certificate, db: Database, D: np.ndarray, observed: np.ndarray, effective: bool
) -> bool:
    total = np.full(D.shape, Fraction(0), dtype=object)
    for argument in certificate.arguments:
        if isinstance(argument, Decomposition):
            for term in argument.terms:
                vectors = []
                for (indices, values), n in zip(term, D.shape, strict=True):
                    dense = np.full(n, Fraction(0), dtype=object)
                    for i, x in zip(indices, values, strict=True):
                        if i < 0:
                            return False
                        dense[i] += x
                    vectors.append(dense)
                total = total + np.einsum("i,j,k->ijk", *vectors)
        else:
            assert isinstance(argument, Boxes)
            if len(argument.box) != db.n_triples:
                return False
            for number in set(argument.box[argument.box >= 0].tolist()):
                mine = db.triples[argument.box == number]
                indicators = [np.isin(np.arange(n), mine[:, m]) for m, n in enumerate(D.shape)]
                total = total + np.einsum("i,j,k->ijk", *(x.astype(int) for x in indicators))
    same = total == D
    return bool(same[observed].all() if effective else same.all())


def claim(
    db: Database, *arguments: Any, quantity: Any = "rank", side: Any = "lower"
) -> Certificate:
    value = sum(a.value for a in arguments)
    return Certificate(quantity, side, value, "hand", arguments, db.facts_sha256, db.multi)
