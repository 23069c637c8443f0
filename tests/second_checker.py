"""A second, slower checker of certificates: dense, in fractions, by definitions alone."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import flint
import numpy as np

from capacity.database import Database
from capacity.rank import (
    Boxes,
    Certificate,
    Decomposition,
    Diagonalization,
    Enclosure,
    Koszul,
    Pencil,
    Substitution,
    Unfolding,
    View,
)


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
    effective = certificate.quantity == "effective_rank" and not observed.all()
    if certificate.value != sum(a.value for a in certificate.arguments):
        return False
    try:
        if certificate.side == "upper":
            return _adds_up(certificate, db, D, observed, effective)
        touched = [
            _indices(a.view) if isinstance(a, Substitution)
            else _proves_lower(a, D, observed, effective)
            for a in certificate.arguments
        ]  # fmt: skip
    except IndexError:
        return False
    if any(t is None for t in touched):
        return False
    strong = (Koszul, Pencil, Diagonalization)
    if sum(isinstance(a, strong) for a in certificate.arguments) > 1:
        return False
    names = _component_names(db)
    # lower bounds of the effective rank don't add over components
    parts = [{0} if effective else {names[vertex] for vertex in t or ()} for t in touched]
    meeting = [p for p in itertools.combinations(range(len(parts)), 2) if parts[p[0]] & parts[p[1]]]
    if len({i for pair in meeting for i in pair}) < 2 * len(meeting):
        return False  # an argument meets two others
    pairs = [(certificate.arguments[i], certificate.arguments[j], touched[j]) for i, j in meeting]
    before = dict.fromkeys(map(id, certificate.arguments))
    for first, second, indices in pairs:
        if not isinstance(first, Unfolding):
            return False
        if {(first.mode, i) for i in first.rows.tolist()} & (indices or set()):
            return False
        if not isinstance(second, Substitution) and not _vanishes(first, indices or set(), D):
            return False
        before[id(second)] = first
    return all(
        _proves_game(a, D, observed, effective, before[id(a)]) is not None
        for a in certificate.arguments
        if isinstance(a, Substitution)
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
    if isinstance(argument, Substitution):
        return _proves_game(argument, D, observed, effective)
    if isinstance(argument, Koszul | Diagonalization):
        seen = _seen(argument.view, D, observed if effective else None)
        if seen is None or any(x is None for x in seen.values()):
            return None
        if isinstance(argument, Koszul):
            return _proves_flattening(argument, D)
        return _proves_more_than_n(argument, D)
    assert isinstance(argument, Pencil)
    if len(set(argument.slices.tolist())) != 2 or argument.mode not in (0, 1, 2):
        return None
    two = np.moveaxis(D, argument.mode, 0)[argument.slices]
    if argument.value > rank_of_two_slices(two):
        return None
    facts = np.argwhere(D)[np.isin(np.argwhere(D)[:, argument.mode], argument.slices)]
    if effective and not observed[np.ix_(np.unique(facts[:, 0]), np.unique(facts[:, 1]))].all():
        return None
    return {(m, int(i)) for row in facts for m, i in enumerate(row)}


def _indices(view: View) -> set[tuple[int, int]]:
    return {(m, i) for m in range(3) for i in view.indices[m].tolist()}


def _seen(view: View, D: np.ndarray, observed: np.ndarray | None) -> dict[Any, Any] | None:
    """The tensor of a view, entry by entry in exact integers; None for unknown ones."""
    if any(len(set(i.tolist())) < len(i) or not len(i) for i in view.indices):
        return None
    rows: list[list[list[tuple[int, int]]]] = []
    for indices, P in zip(view.indices, view.bases, strict=True):
        whole = [[(i, 1)] for i in indices.tolist()]
        if P is not None:
            if P.shape[1] != len(indices):
                return None
            whole = [
                [(i, c) for i, c in zip(indices.tolist(), row, strict=True) if c]
                for row in P.tolist()
            ]
        rows.append(whole)
    seen: dict[Any, Any] = {}
    for a, b, c in itertools.product(*(range(len(of)) for of in rows)):
        parts = list(itertools.product(rows[0][a], rows[1][b], rows[2][c]))
        if observed is not None and not all(
            observed[k, q] for (k, _), (q, _) in itertools.product(rows[0][a], rows[1][b])
        ):
            seen[a, b, c] = None
        else:
            seen[a, b, c] = sum(int(D[k, q, v]) * x * y * z for (k, x), (q, y), (v, z) in parts)
    return seen


def _proves_game(
    argument: Substitution,
    D: np.ndarray,
    observed: np.ndarray,
    effective: bool,
    before: Any = None,
) -> set[tuple[int, int]] | None:
    state = _seen(argument.view, D, observed if effective else None)
    if state is None:
        return None
    if before is not None:
        # what is left is D with unknown multiples of the slices that went first
        gone = np.asarray(np.moveaxis(D, before.mode, 0)[before.rows].any(axis=0))
        a, b = (m for m in range(3) if m != before.mode)
        support = [
            [[i] for i in of.tolist()] if P is None
            else [of[row != 0].tolist() for row in P]
            for of, P in zip(argument.view.indices, argument.view.bases, strict=True)
        ]  # fmt: skip
        for p in state:
            if any(gone[i, j] for i in support[a][p[a]] for j in support[b][p[b]]):
                state[p] = None
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
    return _indices(argument.view)


def _dense(view: View, D: np.ndarray) -> np.ndarray | None:
    seen = _seen(view, D, None)
    if seen is None:
        return None
    dense = np.zeros([x + 1 for x in max(seen)], dtype=object)
    for place, x in seen.items():
        dense[place] = x
    return dense


def _proves_flattening(argument: Koszul, D: np.ndarray) -> set[tuple[int, int]] | None:
    """By exterior products of basis vectors, written as sorted tuples with signs."""
    T = _dense(argument.view, D)
    if T is None or argument.mode not in (0, 1, 2):
        return None
    X = np.moveaxis(T, argument.mode, 0)
    n, p, b, c = len(X), argument.p, X.shape[1], X.shape[2]
    if not 0 <= p < n:
        return None
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
    # a simple tensor has rank C(n - 1, p)
    if argument.value > -(-rational_rank(matrix) // math.comb(n - 1, p)):
        return None
    return _indices(argument.view)


def _slices(argument: Diagonalization, D: np.ndarray) -> list[flint.fmpq_mat] | None:
    T = _dense(argument.view, D)
    if T is None or argument.mode not in (0, 1, 2):
        return None
    X = np.moveaxis(T, argument.mode, 0)
    n = X.shape[1]
    if X.shape[2] != n:
        return None
    return [flint.fmpq_mat(n, n, [int(x) for x in M.ravel()]) for M in X]


def _diagonal(argument: Diagonalization, slices: list[flint.fmpq_mat]) -> bool | None:
    """Whether slices over a nonsingular sum are diagonal in common bases: by eigenspaces."""
    n = slices[0].nrows()
    coefficients = argument.combination.tolist()
    if len(coefficients) != len(slices):
        return None
    X = flint.fmpq_mat(n, n)
    for c, M in zip(coefficients, slices, strict=True):
        X = X + M * c
    if X.det() == 0:
        return None
    ratios = [M * X.inv() for M in slices]
    if any(a * b != b * a for a, b in itertools.combinations(ratios, 2)):
        return False
    for ratio in ratios:
        squarefree = flint.fmpq_poly([1])
        for p, _ in ratio.charpoly().factor()[1]:
            if not _real_rooted(p):
                return False
            squarefree = squarefree * p
        value = flint.fmpq_mat(n, n)
        one = flint.fmpq_mat(n, n, [int(i == j) for i in range(n) for j in range(n)])
        for c in reversed(squarefree.coeffs()):
            value = value * ratio + one * c
        # diagonalisable: the squarefree part of the characteristic polynomial annihilates it
        if value != flint.fmpq_mat(n, n):
            return False
    return True


def _proves_more_than_n(argument: Diagonalization, D: np.ndarray) -> set[tuple[int, int]] | None:
    slices = _slices(argument, D)
    if slices is None or argument.value != slices[0].nrows() + 1:
        return None
    if len(argument.combination):
        return _indices(argument.view) if _diagonal(argument, slices) is False else None
    n = slices[0].nrows()
    for point in itertools.product(range(n + 1), repeat=len(slices)):
        X = flint.fmpq_mat(n, n)
        for c, M in zip(point, slices, strict=True):
            X = X + M * c
        if X.det() != 0:
            return None
    across = [[M.tolist()[i] for M in slices] for i in range(n)]
    down = [[M.transpose().tolist()[i] for M in slices] for i in range(n)]
    for unfolded in (across, down):
        rows = [[Fraction(int(x.p), int(x.q)) for row in rows for x in row] for rows in unfolded]
        if rational_rank(rows) < n:
            return None
    return _indices(argument.view)


def rank_of_two_slices(two: np.ndarray) -> int:
    """Jaja's theorem by determinantal divisors and polynomial kernels, for tiny slices.

    Divisors of A + sB, after a shift that leaves no root at infinity: the gcd of all k-minors over
    that of all (k-1)-minors is an invariant polynomial. The number of polynomial kernel vectors of
    degree at most d gives the sizes of the L blocks.
    """
    A, B = two.astype(int)
    A, B = A[(A | B).any(axis=1)], B[(A | B).any(axis=1)]
    if not A.size:
        return 0
    ranks = {t: _rank(A * t + B) for t in range(-7, 8)}
    shift = max(ranks, key=lambda t: ranks[t])
    lead = A * shift + B  # the coefficient of s
    other = A
    m, n = A.shape
    r = ranks[shift]
    pencil = [[flint.fmpq_poly([int(other[i, j]), int(lead[i, j])]) for j in range(n)]
              for i in range(m)]  # fmt: skip
    divisors = [flint.fmpq_poly([1])]
    for k in range(1, r + 1):
        gcd = flint.fmpq_poly([0])
        for rows in itertools.combinations(range(m), k):
            for columns in itertools.combinations(range(n), k):
                gcd = gcd.gcd(_determinant([[pencil[i][j] for j in columns] for i in rows]))
        divisors.append(gcd)
    invariants = [b // a for a, b in itertools.pairwise(divisors)]
    delta = 0
    for f in invariants:
        if f.degree() > 0:
            delta += not (_real_rooted(f) and f.gcd(f.derivative()).degree() == 0)
    size = sum(f.degree() for f in invariants)
    for C, E in ((other, lead), (other.T, lead.T)):
        count, before, width = C.shape[1] - r, 0, C.shape[1]
        d = free = 0
        while True:
            # coefficients x_0 .. x_d of a kernel vector
            T = np.zeros(((d + 2) * len(C), (d + 1) * width), int)
            for i in range(d + 1):
                T[i * len(C) : (i + 1) * len(C), i * width : (i + 1) * width] = C
                T[(i + 1) * len(C) : (i + 2) * len(C), i * width : (i + 1) * width] = E
            kernel = T.shape[1] - _rank(T)
            # so many blocks have size at most d; those of size 0 don't count
            if d == 0:
                free = kernel
            if kernel - before == count:
                break
            before, d = kernel, d + 1
        total = count * (d + 1) - kernel  # the sum of the blocks' sizes
        size += total + count - free
    return size + delta


def _real_rooted(f: flint.fmpq_poly) -> bool:
    roots: Any = f.numer().complex_roots()
    return all(root.imag == 0 for root, _ in roots)


def _rank(M: np.ndarray) -> int:
    return rational_rank([[Fraction(int(x)) for x in row] for row in M])


def _determinant(M: list[list[Any]]) -> Any:
    if len(M) == 1:
        return M[0][0]
    return sum(
        (M[0][j] * _determinant([row[:j] + row[j + 1 :] for row in M[1:]]) * (-1) ** j
         for j in range(len(M)) if M[0][j]),
        flint.fmpq_poly([0]),
    )  # fmt: skip


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
        elif isinstance(argument, Pencil | Diagonalization):
            given = _given_whole(argument, db, D)
            if given is None:
                return False
            total = total + given
        elif isinstance(argument, Enclosure):
            given = _given_by_newton(argument, db, D, observed if effective else None)
            if given is None:
                return False
            total = total + given
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


def _given_whole(
    argument: Pencil | Diagonalization, db: Database, D: np.ndarray
) -> np.ndarray | None:
    """The tensor of whole components, if they have the rank that is claimed."""
    names = _component_names(db)
    if isinstance(argument, Pencil):
        if len(set(argument.slices.tolist())) != 2 or argument.mode not in (0, 1, 2):
            return None
        mine = {names[argument.mode, i] for i in argument.slices.tolist()}
        part = _of_components(D, names, mine)
        two = np.moveaxis(part, argument.mode, 0)
        whole = two.reshape(len(two), -1)
        if _rank(whole) > _rank(whole[argument.slices]):
            return None
        return part if argument.value >= rank_of_two_slices(two[argument.slices]) else None
    slices = _slices(argument, D)
    if slices is None or any(P is not None for P in argument.view.bases):
        return None
    if argument.value != slices[0].nrows() or not _diagonal(argument, slices):
        return None
    mode = argument.mode
    mine = {names[mode, i] for i in argument.view.indices[mode].tolist()}
    part = _of_components(D, names, mine)
    for m in range(3):
        unfolded = np.moveaxis(part, m, 0).reshape(D.shape[m], -1)
        if _rank(unfolded) > _rank(unfolded[argument.view.indices[m]]):
            return None
    return part


def _given_by_newton(
    argument: Enclosure, db: Database, D: np.ndarray, observed: np.ndarray | None
) -> np.ndarray | None:
    """Newton's method with 300 bits goes to a zero within the box; no proof, but another way."""
    view, fibers = argument.view, {tuple(pair) for pair in argument.fibers.tolist()}
    if argument.mode not in (0, 1, 2) or len(fibers) < len(argument.fibers):
        return None
    others = [m for m in range(3) if m != argument.mode]

    def free(place: Any) -> bool:
        return tuple(int(place[m]) for m in others) in fibers

    def outside(local: Any) -> bool:
        return not free([view.indices[m][local[m]] for m in range(3)])

    local = list(itertools.product(*(range(len(i)) for i in view.indices)))
    if len(argument.varying) == sum(map(outside, local)):
        observed = None
    seen = _seen(view, D, observed)
    if seen is None or any(P is not None for P in view.bases) or not 0 < argument.radius < 1:
        return None
    seen = {place: x for place, x in seen.items() if outside(place)}
    rank = argument.factors[0].shape[1]
    if [f.shape for f in argument.factors] != [(len(i), rank) for i in view.indices]:
        return None
    places = [place for place, x in seen.items() if x is not None]
    flat = [x for f in argument.factors for x in f.ravel().tolist()]
    starts = np.cumsum([0, *(f.size for f in argument.factors)]).tolist()
    varying = argument.varying.tolist()
    n = len(places)
    if len(set(varying)) != n or len(varying) != n or not all(0 <= x < len(flat) for x in varying):
        return None
    old, size = flint.ctx.prec, 1.0
    flint.ctx.prec = 300
    try:
        x = [flint.arb(value) for value in flat]
        for _ in range(8):
            J = flint.arb_mat(n, n)
            left: list[Any] = []
            column = {unknown: j for j, unknown in enumerate(varying)}
            for i, place in enumerate(places):
                at = [[starts[m] + place[m] * rank + r for r in range(rank)] for m in range(3)]
                value = flint.arb(-int(seen[place]))
                for r in range(rank):
                    unknowns = [at[m][r] for m in range(3)]
                    value += x[unknowns[0]] * x[unknowns[1]] * x[unknowns[2]]
                    for m in range(3):
                        if unknowns[m] in column:
                            a, b = (u for k, u in enumerate(unknowns) if k != m)
                            J[i, column[unknowns[m]]] = x[a] * x[b]
                left.append(value)
            size = max(float(abs(value).upper()) for value in left)
            try:
                step = J.solve(flint.arb_mat(n, 1, left))
            except ZeroDivisionError:
                return None
            for j, unknown in enumerate(varying):
                x[unknown] = (x[unknown] - step[j, 0]).mid()
        inside = all(
            float(abs(x[u] - flint.arb(flat[u])).upper()) <= argument.radius for u in varying
        )
    finally:
        flint.ctx.prec = old
    if size > 1e-60 or not inside:
        return None
    names = _component_names(db)
    mine = {names[0, i] for i in view.indices[0].tolist()}
    facts = [tuple(place) for place in np.argwhere(D).tolist()]
    mine |= {names[0, place[0]] for place in facts if free(place)}
    part = _of_components(D, names, mine)
    if fibers:
        left = [place for place in np.argwhere(part).tolist() if not free(place)]
        chosen = [set(i.tolist()) for i in view.indices]
        return part if all(place[m] in chosen[m] for place in left for m in range(3)) else None
    for m in range(3):
        used = set(np.argwhere(part)[:, m].tolist())
        mine = set(view.indices[m].tolist())
        if not mine <= used or (observed is not None and mine != used):
            return None
        unfolded = np.moveaxis(part, m, 0).reshape(D.shape[m], -1)
        if _rank(unfolded) > _rank(unfolded[view.indices[m]]):
            return None
    return part


def _of_components(
    D: np.ndarray, names: dict[tuple[int, int], int], wanted: set[int]
) -> np.ndarray:
    part = D.copy()
    for place in np.argwhere(D):
        if names[0, int(place[0])] not in wanted:
            part[tuple(place)] = 0
    return part


def claim(
    db: Database, *arguments: Any, quantity: Any = "rank", side: Any = "lower"
) -> Certificate:
    value = sum(a.value for a in arguments)
    return Certificate(quantity, side, value, "hand", arguments, db.facts_sha256, db.multi)
