"""Lower bound n + 1 from the partial matrices of n objects that have no completion of rank one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, cast

import flint
import numpy as np

from capacity.rank.types import Indices, Mask, Touched
from capacity.rank.verifier.argument import Forms, FromBelow, View
from capacity.rank.verifier.budget import CheckBudget, require_at_most, steps_of_rank
from capacity.rank.verifier.entries import Entries, require
from capacity.rank.verifier.kind import Kind
from capacity.rank.verifier.view import view_tensor

MOST_SUPPORTS = 20_000
# steps for each fiber that is compared with a support, of an exact kernel, times a rank's, and for
# two kernels of any size
FIBER, KERNEL, CALL = 150, 8, 100_000
# a fiber of zeros
NONE = -1


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


class Fibers(NamedTuple):
    """The known fibers of a tensor along a mode.

    Attributes
    ----------
    object_of : list of int
        The object of each fiber; `NONE` where it is zero.
    indices : list of list of int
        Its indices in the other modes, which are numbered together.
    n_objects : int
        The number of objects.
    """

    object_of: list[int]
    indices: list[list[int]]
    n_objects: int


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
    fibers = fibers_of(tensor, known, argument.mode)
    require(fibers is not None, "a known fiber isn't zero or a single 1, or is known in part")
    found = cast("Fibers", fibers)
    form: list[int] = argument.form.tolist()
    require(len(form) == found.n_objects, "each object must have a coefficient")
    require(any(form), "the linear form is zero")
    require(len({*found.object_of} - {NONE}) == len(form), "an object has no known fiber")
    for support in supports(found, entries.budget):
        for some in classes(found, support, entries.budget):
            require(sum(form[v] for v in some) == 0, "the form doesn't vanish at a completion")
    return argument.view.indices


def fibers_of(tensor: Indices, known: Mask, mode: int) -> Fibers | None:
    """List the known fibers along a mode; None if one isn't zero or a single 1."""
    T, seen = (np.moveaxis(x, mode, -1) for x in (tensor, known))
    n = T.shape[-1]
    whole = seen.all(axis=-1)
    if (seen.any(axis=-1) != whole).any():
        return None
    at, rows = np.argwhere(whole), T[whole]
    counts = (rows != 0).sum(axis=1)
    if (counts > 1).any() or (rows.sum(axis=1) != counts).any():
        return None
    objects = np.where(counts == 1, (rows != 0).argmax(axis=1), NONE)
    first = np.cumsum([0, *T.shape[:-2]])
    return Fibers(objects.tolist(), (at + first).tolist(), n)


def supports(fibers: Fibers, budget: CheckBudget) -> Iterator[list[int]]:
    """Yield the sets of objects on which a completion may differ from zero, but the empty one.

    Such a set S has every object whose fiber has all its indices in fibers of S, and no fiber of
    zeros does.
    """
    masks = [sum(1 << i for i in places) for places in fibers.indices]
    of = list(zip(fibers.object_of, masks, strict=True))
    reach = [0] * fibers.n_objects
    for v, mask in of:
        if v != NONE:
            reach[v] |= mask
    count = 0

    def closed(start: int, reached: int) -> tuple[int, int] | None:
        """Add objects that must be in the set, too; None if a fiber of zeros is one of them."""
        budget.spend(FIBER * len(of))
        support = start
        for v, mask in of:
            if mask & ~reached == 0:
                if v == NONE:
                    return None
                support |= 1 << v
        if support == start:
            return support, reached
        for v in _members(support & ~start):
            reached |= reach[v]
        return closed(support, reached)

    # sets, what they reach, and objects that have had their turn
    stack = [(0, 0, 0)]
    while stack:
        support, reached, done = stack.pop()
        if support:
            count += 1
            require_at_most("supports of completions", count, MOST_SUPPORTS)
            yield [*_members(support)]
        for v in range(fibers.n_objects):
            if (support | done) >> v & 1:
                continue
            wider = closed(support | 1 << v, reached | reach[v])
            if wider is not None and not wider[0] & done:
                stack.append((*wider, done))
            done |= 1 << v


def classes(fibers: Fibers, support: list[int], budget: CheckBudget) -> Iterable[list[int]]:
    """Return classes of objects on which all completions with this support agree."""
    n_fibers = sum(v in support for v in fibers.object_of)
    n_indices = len({i for places in fibers.indices for i in places})
    n_columns = len(support) + n_indices
    budget.spend(CALL + KERNEL * steps_of_rank(n_fibers, n_columns))
    over_q, over_2 = kernels(relations(fibers, support)[0])
    of: dict[tuple[int, ...], list[int]] = {}
    for i, v in enumerate(support):
        of.setdefault((*over_q[:, i].tolist(), *over_2[:, i].tolist()), []).append(v)
    return of.values()


def relations(fibers: Fibers, support: list[int]) -> tuple[Indices, list[int]]:
    """Return the relations between logarithms, and the indices that they are about.

    A row is that of a fiber: 1 at its object, by its place in the support, and -1 at each of its
    indices, by its place in the second result, which comes after the objects.
    """
    rows = [
        (v, places)
        for v, places in zip(fibers.object_of, fibers.indices, strict=True)
        if v in support
    ]
    numbers = sorted({i for _, places in rows for i in places})
    column = {number: len(support) + i for i, number in enumerate(numbers)}
    M = np.zeros((len(rows), len(support) + len(numbers)), np.int64)
    for row, (v, places) in zip(M, rows, strict=True):
        row[support.index(v)] = 1
        row[[column[i] for i in places]] = -1
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


def _members(bits: int) -> Iterator[int]:
    """Yield the numbers of the bits that are set."""
    while bits:
        least = bits & -bits
        yield least.bit_length() - 1
        bits ^= least


KIND = Kind(RankOneCompletion, lower=check_rank_one_completion)
