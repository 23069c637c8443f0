"""Lower bound n + 1 from the partial matrices of n objects that have no completion of rank one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, cast

import flint
import numpy as np

from capacity.exact.types import Indices, Mask, Touched
from capacity.rank.verifier.argument import Forms, FromBelow, View
from capacity.rank.verifier.budget import DENSE_BYTES, CheckBudget, steps_of_rank
from capacity.rank.verifier.entries import Entries, require
from capacity.rank.verifier.kind import Kind
from capacity.rank.verifier.view import view_tensor

# steps for each entry of a tensor whose fibers are listed, and for each index of a fiber; for one
# that is compared with what an object reaches, for each pair of objects, for each entry of a basis
# that is compared, for a kernel over the rationals and modulo 2, times those of a rank, and for a
# call of any size
ENTRY, PLACE, COMPARED, PAIR, BASIS, KERNEL, CALL = 10, 150, 3, 100, 50, 4, 100_000
# bytes for each entry, and for each index of a fiber
ENTRY_BYTES, PLACE_BYTES = 10, 60


@dataclass(frozen=True, eq=False, repr=False)
class RankOneCompletion(FromBelow):
    """A linear form on the objects that vanishes wherever a completion has rank one.

    Attributes
    ----------
    view : View
        Sub-tensor whose known fibers along the mode have at most one entry, 1. Its indices of the
        mode are called objects here.
    mode : int
        Mode of the fibers; the last one, for the effective rank.
    form : ndarray of int64
        Coefficients of the linear form, one for each object.
    """

    kind: ClassVar[str] = "rank-one completion"
    forms: ClassVar[Forms] = {"view": "view", "mode": "integer", "form": "coefficients"}
    view: View
    mode: int
    form: Indices

    @property
    def value(self) -> int:
        """One more than the number of objects."""
        return len(self.form) + 1


@dataclass(frozen=True, eq=False)
class Fibers:
    """The known fibers of a tensor along a mode, each by its indices in the other modes.

    Indices of these modes are numbered together.

    Attributes
    ----------
    places : ndarray of int64, shape (n_fibers, order - 1)
        The indices of each fiber.
    objects : ndarray of int64, shape (n_fibers,)
        The object of each fiber, ascending; `n_objects` for fibers of zeros.
    n_objects : int
        The number of objects.
    """

    places: Indices
    objects: Indices
    n_objects: int

    @property
    def first(self) -> Indices:
        """The first fiber of each object, and the first of zeros: shape (n_objects + 1,)."""
        return np.searchsorted(self.objects, np.arange(self.n_objects + 1))

    @property
    def complete(self) -> bool:
        """True if each object has a fiber."""
        return bool((np.diff(self.first) > 0).all())


@dataclass(frozen=True, eq=False)
class Solutions:
    """The completions that aren't zero at some objects, and at as few others as they can.

    Attributes
    ----------
    support : ndarray of int64, shape (n_support,)
        The objects where they aren't zero, ascending.
    indices : ndarray of int64, shape (n_indices,)
        The indices of the fibers of these objects, ascending. The others may have coefficient 0.
    fibers : ndarray of int64, shape (n_support, order - 1)
        A fiber of each object, by the places of its indices among these.
    powers : ndarray of Python's integers, shape (n_powers, n_indices)
        Basis of the logarithms of the absolute values of coefficients, over the rationals.
    signs : ndarray of int64, shape (n_signs, n_indices)
        Basis of the signs of coefficients, modulo 2.
    """

    support: Indices
    indices: Indices
    fibers: Indices
    powers: Indices
    signs: Indices

    def classes(self, objects: Indices) -> list[list[int]]:
        """Return classes of objects of the support at which all completions have equal entries."""
        of = self.fibers[np.searchsorted(self.support, objects)]
        powers, signs = (basis.T[of].sum(axis=1) for basis in (self.powers, self.signs))
        keys = np.hstack([powers, signs % 2])
        found: dict[tuple[int, ...], list[int]] = {}
        for v, key in zip(objects.tolist(), keys.tolist(), strict=True):
            found.setdefault(tuple(key), []).append(v)
        return [*found.values()]


def check_rank_one_completion(argument: RankOneCompletion, entries: Entries) -> Touched:
    """Check that the linear form vanishes wherever the known fibers have a completion of rank one.

    Let n be the number of objects, each the only one of some known fiber. The rank is at least n,
    as the fibers of the objects are independent. Suppose that it is n: T = sum_r M_r (x) c_r with n
    simple tensors M_r. The c_r span the unit vectors of the objects, so they are a basis. Let g_r
    be the dual one. Applied to a known fiber it yields the entry of M_r there, which is g_r[v]
    where v is the fiber's object, and 0 where the fiber is zero. So each g = g_r has a
    *completion*: a simple tensor M with these entries. If a linear form vanishes at every g that
    has one, it vanishes on a basis, and is zero. Hence the rank is at least n + 1 if the form isn't
    zero.

    Let M = a_1 (x) a_2 (x) ..., and g[v] != 0. The indices of the fibers of v have coefficients
    that aren't zero. So M isn't zero at any other fiber that has all its indices among these, and
    g isn't zero at its object, whose fibers have further such indices, and so on: `supports` lists
    the objects that v has in tow. If a fiber of zeros is reached, g[v] = 0 for every g. If v and w
    have each other in tow, g is zero at both or at neither. In the latter case it isn't zero at any
    object u in tow, where g[u] = a_1[x_1] a_2[x_2] ... at each fiber of u: logarithms of absolute
    values solve a linear system over the rationals, and signs solve it modulo 2. If all solutions
    of both agree on v and w, then g[v] = g[w] in any case.

    So the form vanishes at g if its coefficients add up to 0 over each class of such objects. Those
    where g is always zero don't matter.
    """
    entries.require_mode(argument.mode)
    tensor, known = view_tensor(argument.view, entries)
    budget = entries.budget
    budget.spend(*work_of(tensor.shape, argument.mode))
    fibers = fibers_of(tensor, known, argument.mode)
    require(fibers is not None, "a known fiber isn't zero or a single 1, or is known in part")
    found, form = cast("Fibers", fibers), argument.form
    require(len(form) == found.n_objects, "each object must have a coefficient")
    require(form.any(), "the linear form is zero")
    require(found.complete, "an object has no known fiber")
    for objects in grouped(towed := supports(found, budget)):
        if not form[objects].any():
            continue
        classes = [objects.tolist()]
        if len(objects) > 1:
            classes = solutions(found, towed[objects[0]], budget).classes(objects)
        for some in classes:
            total = sum(int(form[v]) for v in some)
            require(total == 0, "the form doesn't vanish at a completion")
    return argument.view.indices


def work_of(shape: tuple[int, ...], mode: int) -> tuple[int, int]:
    """Estimate the steps and the bytes of listing the fibers along a mode."""
    size = math.prod(shape)
    places = size // max(1, shape[mode]) * len(shape)
    return ENTRY * size + PLACE * places, ENTRY_BYTES * size + PLACE_BYTES * places


def fibers_of(tensor: Indices, known: Mask, mode: int) -> Fibers | None:
    """List the known fibers along a mode; None if one isn't zero or a single 1."""
    T, seen = (np.moveaxis(x, mode, -1) for x in (tensor, known))
    whole = seen.all(axis=-1)
    if (seen.any(axis=-1) != whole).any():
        return None
    at, rows = np.argwhere(whole), T[whole]
    counts = (rows != 0).sum(axis=1)
    if (counts > 1).any() or (rows.sum(axis=1) != counts).any():
        return None
    n = T.shape[-1]
    objects: Indices = rows.argmax(axis=1)
    objects[counts == 0] = n
    order = np.argsort(objects, kind="stable")
    places = at + np.cumsum([0, *T.shape[:-2]])
    return Fibers(places[order], objects[order], n)


def supports(fibers: Fibers, budget: CheckBudget) -> Mask:
    """Return the objects where a completion can't be zero, for each where it isn't.

    Parameters
    ----------
    fibers : Fibers
        The known fibers, at least one of each object.
    budget : CheckBudget
        The work that is left.

    Returns
    -------
    ndarray of bool, shape (n_objects, n_objects)
        A row for each object, with itself; a row of zeros if every completion is zero there.
    """
    n, order, first = fibers.n_objects, fibers.places.shape[1], fibers.first
    n_fibers, n_indices = len(fibers.places), 1 + int(fibers.places.max())
    steps = CALL + COMPARED * order * n_fibers * n + n * n * (PAIR + n_indices // 8)
    memory = n * (2 * (order + 1) * n_fibers + 16 * (n + n_indices))
    budget.spend(CALL + PLACE * fibers.places.size, memory)
    named = slice(int(first[-1]))
    reached = np.zeros((n, n_indices), bool)
    reached[fibers.objects[named, None], fibers.places[named]] = True
    while True:
        budget.spend(steps)
        inside = np.logical_and.reduce([reached[:, of] for of in fibers.places.T])
        towed = np.logical_or.reduceat(inside[:, named], first[:-1], axis=1)
        # all that objects in tow reach; a sum of ones is positive however it is rounded
        wider = towed.astype(np.float32) @ reached.astype(np.float32) > 0
        if (wider == reached).all():
            towed[inside[:, first[-1] :].any(axis=1)] = False
            return towed
        reached = wider


def grouped(towed: Mask) -> list[Indices]:
    """Return groups of objects that have each other in tow, of the rows that `supports` returns."""
    of = np.where(towed.diagonal(), (towed & towed.T).argmax(axis=1), -1)
    return [np.flatnonzero(of == v) for v in np.unique(of[of >= 0])]


def solutions(fibers: Fibers, support: Mask, budget: CheckBudget) -> Solutions:
    """Solve the linear systems of the completions with one of the rows that `supports` returns."""
    rows = np.append(support, False)[fibers.objects]
    places, objects = fibers.places[rows], fibers.objects[rows]
    budget.spend(CALL + PLACE * places.size)
    indices, columns = np.unique(places, return_inverse=True)
    columns = columns.reshape(places.shape)
    n_rows, n_columns = max(len(places), len(indices)), len(indices)
    steps = KERNEL * steps_of_rank(n_rows, n_columns) + BASIS * places.size * n_columns
    budget.spend(steps, 3 * DENSE_BYTES * n_rows * n_columns)
    of_fiber = np.zeros((len(places), n_columns), np.int64)
    np.put_along_axis(of_fiber, columns, 1, axis=1)
    which, first, of = np.unique(objects, return_index=True, return_inverse=True)
    # all fibers of an object have its entry
    relations = np.delete(of_fiber - of_fiber[first][of], first, axis=0)
    return Solutions(which, indices, columns[first], *kernels(relations))


def kernels(M: Indices) -> tuple[Indices, Indices]:
    """Return bases of the kernels of a matrix over the rationals, by integers, and modulo 2.

    Each row is a vector; the first result holds Python's integers, without common factors.
    """
    n_rows, n_columns = M.shape
    flat: list[int] = M.ravel().tolist()
    over_q, free = flint.fmpz_mat(n_rows, n_columns, flat).nullspace()
    flat = (M % 2).ravel().tolist()
    over_2, free_2 = flint.nmod_mat(n_rows, n_columns, flat, 2).nullspace()
    first = np.array(over_q.tolist(), object).reshape(n_columns, -1)[:, :free].T
    second = np.array(over_2.tolist(), object).reshape(n_columns, -1)[:, :free_2].T
    for row in first:
        row[:] = [int(x) for x in row]
        row //= np.gcd.reduce(row)
    return first, second.astype(np.int64)


KIND = Kind(RankOneCompletion, lower=check_rank_one_completion)
