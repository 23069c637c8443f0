"""Lower bound n + 1 from the partial matrices of n objects that have no completion of rank one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, cast

import flint
import numpy as np

from capacity.rank.types import Indices, Mask, Touched
from capacity.rank.verifier.argument import Forms, FromBelow, View
from capacity.rank.verifier.budget import DENSE_BYTES, CheckBudget, require_at_most, steps_of_rank
from capacity.rank.verifier.entries import Entries, require
from capacity.rank.verifier.kind import Kind
from capacity.rank.verifier.view import view_tensor

MOST_SUPPORTS = 20_000
# steps for each place of a fiber that is listed, for each fiber that is compared with a support,
# for a kernel over the rationals and modulo 2, times those of a rank, and for both of any size
PLACE, FIBER, KERNEL, CALL = 3_000, 150, 8, 150_000
# bytes for each place of a fiber, beside a bit for each index
PLACE_BYTES = 500


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


@dataclass(frozen=True)
class Fibers:
    """The known fibers of a tensor along a mode, each by its indices in the other modes.

    Indices of these modes are numbered together.

    Attributes
    ----------
    of_object : list of list of list of int
        The fibers of each object.
    zeros : list of list of int
        The fibers of zeros.
    """

    of_object: list[list[list[int]]]
    zeros: list[list[int]]

    @property
    def n_objects(self) -> int:
        """The number of objects."""
        return len(self.of_object)


def check_rank_one_completion(argument: RankOneCompletion, entries: Entries) -> Touched:
    """Check that the linear form vanishes wherever the known fibers have a completion of rank one.

    Let n be the number of objects, each the only one of some known fiber. The rank is at least n,
    as the fibers of the objects are independent. Suppose that it is n: T = sum_r M_r (x) c_r with n
    simple tensors M_r. The c_r span the unit vectors of the objects, so they are a basis. Let g_r
    be the dual one. Applied to a known fiber it gives the entry of M_r there, which is g_r[v] where
    v is the fiber's object, and 0 where the fiber is zero. So each g = g_r has a *completion*: a
    simple tensor M with these entries. If a linear form vanishes at every g that has one, it
    vanishes on a basis, and is zero. Hence the rank is at least n + 1 if the form isn't zero.

    Let M = a_1 (x) a_2 (x) ..., and let S be the set of objects with g[v] != 0. Where a fiber's
    object is in S, all its indices have coefficients that aren't zero; so no other fiber may have
    all its indices among these, unless its object is in S, too. `supports` lists the sets for which
    this holds. At the fibers of S, g[v] = a_1[x_1] a_2[x_2] ...: the logarithms of the absolute
    values solve a linear system over the rationals, and the signs solve it modulo 2. Objects on
    which all solutions agree, of both, have equal g[v]: these are the classes of `classes`. The
    form vanishes at g if its coefficients add up to 0 over each class.
    """
    entries.require_mode(argument.mode)
    tensor, known = view_tensor(argument.view, entries)
    entries.budget.spend(*work_of(tensor.shape, argument.mode))
    fibers = fibers_of(tensor, known, argument.mode)
    require(fibers is not None, "a known fiber isn't zero or a single 1, or is known in part")
    found = cast("Fibers", fibers)
    form: list[int] = argument.form.tolist()
    require(len(form) == found.n_objects, "each object must have a coefficient")
    require(any(form), "the linear form is zero")
    require(all(found.of_object), "an object has no known fiber")
    for support in supports(found, entries.budget):
        for some in classes(found, support, entries.budget):
            require(sum(form[v] for v in some) == 0, "the form doesn't vanish at a completion")
    return argument.view.indices


def work_of(shape: tuple[int, ...], mode: int) -> tuple[int, int]:
    """Estimate the steps and the bytes of listing the fibers along a mode."""
    n_fibers, n_indices = math.prod(shape) // max(1, shape[mode]), sum(shape) - shape[mode]
    # a mask of all indices for each fiber
    each = PLACE_BYTES * len(shape) + n_indices // 8
    return n_fibers * (PLACE * len(shape) + n_indices // 8), n_fibers * each


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
    numbers: list[list[int]] = (at + np.cumsum([0, *T.shape[:-2]])).tolist()
    objects: list[int] = rows.argmax(axis=1).tolist()
    found = Fibers([[] for _ in range(T.shape[-1])], [])
    for v, one, places in zip(objects, counts.tolist(), numbers, strict=True):
        if one:
            found.of_object[v].append(places)
        else:
            found.zeros.append(places)
    return found


def supports(fibers: Fibers, budget: CheckBudget) -> Iterator[list[int]]:
    """Yield the sets of objects on which a completion may differ from zero, but the empty one.

    Such a set S has every object whose fiber has all its indices in fibers of S, and no fiber of
    zeros does.
    """
    masks = [[_mask(places) for places in of] for of in fibers.of_object]
    zeros = [_mask(places) for places in fibers.zeros]
    reach = [_mask([index for places in of for index in places]) for of in fibers.of_object]
    n_fibers = len(zeros) + sum(map(len, masks))
    count = 0

    def closed(support: int, reached: int) -> tuple[int, int] | None:
        """Add objects that must be in the set, too; None if a fiber of zeros is one of them."""
        while True:
            budget.spend(FIBER * n_fibers * (1 + reached.bit_length() // 1_000))
            if any(mask & ~reached == 0 for mask in zeros):
                return None
            more = [
                v
                for v, of in enumerate(masks)
                if not support >> v & 1 and any(mask & ~reached == 0 for mask in of)
            ]
            if not more:
                return support, reached
            for v in more:
                support |= 1 << v
                reached |= reach[v]

    # sets, what they reach, and objects that have had their turn
    stack = [(0, 0, 0)]
    while stack:
        support, reached, done = stack.pop()
        if support:
            count += 1
            require_at_most("supports of completions", count, MOST_SUPPORTS)
            yield [v for v in range(fibers.n_objects) if support >> v & 1]
        for v in range(fibers.n_objects):
            if (support | done) >> v & 1:
                continue
            wider = closed(support | 1 << v, reached | reach[v])
            if wider is not None and not wider[0] & done:
                stack.append((*wider, done))
            done |= 1 << v


def classes(fibers: Fibers, support: list[int], budget: CheckBudget) -> Iterable[list[int]]:
    """Return classes of objects on which all completions with this support agree."""
    M, _ = relations(fibers, support, budget)
    budget.spend(CALL + KERNEL * steps_of_rank(*M.shape), 2 * DENSE_BYTES * M.size)
    over_q, over_2 = kernels(M)
    of: dict[tuple[int, ...], list[int]] = {}
    for i, v in enumerate(support):
        of.setdefault((*over_q[:, i].tolist(), *over_2[:, i].tolist()), []).append(v)
    return of.values()


def relations(fibers: Fibers, support: list[int], budget: CheckBudget) -> tuple[Indices, list[int]]:
    """Return the relations between logarithms, and the indices that they are about.

    A row is that of a fiber: 1 at its object, by its place in the support, and -1 at each of its
    indices, by its place in the second result, which comes after the objects.
    """
    budget.spend(PLACE * sum(len(fibers.of_object[v]) for v in support))
    rows = [(i, places) for i, v in enumerate(support) for places in fibers.of_object[v]]
    numbers = sorted({index for _, places in rows for index in places})
    size = len(rows) * (len(support) + len(numbers))
    budget.spend(PLACE * len(rows) + size, 8 * size)
    column = {number: len(support) + i for i, number in enumerate(numbers)}
    M = np.zeros((len(rows), len(support) + len(numbers)), np.int64)
    for row, (i, places) in zip(M, rows, strict=True):
        row[i] = 1
        row[[column[index] for index in places]] = -1
    return M, numbers


def kernels(M: Indices) -> tuple[Indices, Indices]:
    """Return bases of the kernels of a matrix over the rationals, by integers, and modulo 2.

    Each row is a vector; the first result holds Python's integers, without common factors.
    """
    n_rows, n_columns = M.shape
    flat: list[int] = M.ravel().tolist()
    over_q, free = flint.fmpz_mat(n_rows, n_columns, flat).nullspace()
    over_2, free_2 = flint.nmod_mat(n_rows, n_columns, [x % 2 for x in flat], 2).nullspace()
    first = np.array(over_q.tolist(), object).reshape(n_columns, -1)[:, :free].T
    second = np.array(over_2.tolist(), object).reshape(n_columns, -1)[:, :free_2].T
    for row in first:
        row[:] = [int(x) for x in row]
        row //= np.gcd.reduce(row)
    return first, second.astype(np.int64)


def _mask(places: list[int]) -> int:
    return sum(1 << index for index in {*places})


KIND = Kind(RankOneCompletion, lower=check_rank_one_completion)
