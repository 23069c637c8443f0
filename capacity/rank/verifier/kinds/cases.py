"""Lower bound by the substitution method with distinctions of cases, as a tree of steps."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from capacity.exact.types import Indices, Mask, Touched
from capacity.rank.verifier.argument import Forms, FromBelow, View
from capacity.rank.verifier.budget import require_at_most
from capacity.rank.verifier.entries import SORT, Entries, require
from capacity.rank.verifier.kind import Kind
from capacity.rank.verifier.view import view_tensor

# what is known of an entry: it is 0; its value, which isn't 0; that it isn't 0; nothing
ZERO, VALUE, NONZERO, UNKNOWN = range(4)
# a multiplier that is neither 0 nor a ratio of known entries
OTHER = None
Multiplier: TypeAlias = Fraction | None
# steps for each entry of a tensor and each removal, and for each case; steps and bytes for each
# place of a slice whose multipliers are distinguished
ENTRY, CASE, RATIO, RATIO_BYTES = 60, 200_000, 3 * SORT, 120
MOST_NODES = 20_000
# values are below this, and differences of products of two below `EXACT` fit 64 bits
LARGEST, EXACT = 2**31, 2**30


@dataclass(frozen=True, eq=False, repr=False)
class Cases(FromBelow):
    """Steps of the substitution method as a tree: at each node, the multipliers of some slices.

    Attributes
    ----------
    view : View
        Sub-tensor whose slices are removed.
    removals : ndarray of int64, shape (n, 2)
        Pairs (mode, index) of the slices that are removed at each node, the nodes in preorder.
    nodes : ndarray of int64, shape (n_nodes, 2)
        Of each node the number of its removals, and of slices whose multipliers are distinguished
        at the last of them; 0 at a leaf.
    split : ndarray of int64
        Indices of these slices, in the mode of that removal, node by node. The children of a node
        are the cases in the order of `cases_of`.
    value : int
        The bound: each path from the root to a leaf removes at least as many slices.
    """

    kind: ClassVar[str] = "cases"
    forms: ClassVar[Forms] = {
        "view": "view",
        "removals": "pairs",
        "nodes": "pairs",
        "split": "indices",
        "value": "integer",
    }
    view: View
    removals: Indices
    nodes: Indices
    split: Indices
    value: int


@dataclass
class State:
    """A tensor that is partly known: what of each entry, the values, and the slices that remain.

    Values count where the status is `VALUE` alone. Where a slice of another mode has been removed
    nothing is meant, in any slice.
    """

    status: NDArray[np.int8]
    values: Indices
    alive: list[Mask]

    @classmethod
    def of(cls, tensor: Indices, known: Mask) -> State:
        """Return the state from which the steps start: all slices, and the known entries."""
        require((np.abs(tensor) < LARGEST).all(), "an entry of the view is too large")
        status = np.where(known, np.where(tensor != 0, VALUE, ZERO), UNKNOWN).astype(np.int8)
        return cls(status, tensor.copy(), [np.ones(n, bool) for n in tensor.shape])

    def copy(self) -> State:
        """Copy the state."""
        return State(self.status.copy(), self.values.copy(), [x.copy() for x in self.alive])

    def slice(self, mode: int, index: int) -> tuple[NDArray[np.int8], Indices]:
        """Return views of what is known of a slice, and of its values."""
        return np.moveaxis(self.status, mode, 0)[index], np.moveaxis(self.values, mode, 0)[index]

    def live(self, mode: int) -> Mask:
        """Return the places of a slice of a mode that remain."""
        others = [x for m, x in enumerate(self.alive) if m != mode]
        live = np.ones([len(x) for x in others], bool)
        for axis, x in enumerate(others):
            live &= np.expand_dims(x, [a for a in range(live.ndim) if a != axis])
        return live


def check_cases(argument: Cases, entries: Entries) -> Touched:
    """Check that each path of the tree makes steps of the substitution method, as many as claimed.

    As in `capacity.rank.verifier.kinds.substitution`, a slice T_i that is known to be nonzero is
    removed, and the rank falls by one or more: in a shortest decomposition some term r has
    a_r[i] != 0, and every other slice becomes T_j - c_j T_i with c_j = a_r[j] / a_r[i]. There the
    c_j are unknown, and the entries of T_j become unknown wherever T_i isn't known to be zero. Here
    they are distinguished for some j. Either c_j = 0, and T_j stays as it is; or c_j is one of the
    ratios of a known entry of T_j to one of T_i that isn't 0, so that some entries cancel; or it is
    another number, and none does. Then an entry is known to be nonzero where both are known and not
    zero, or where T_j is zero and T_i is not. One case holds for that decomposition, and
    each leads to a tensor of lower rank with what is known of it. If every path removes at least n
    slices, the rank is at least n. For the effective rank the unobserved fibers are unknown from
    the start, and this holds for every completion.

    For several slices each combination of cases is a child. T_j - p/q T_i is replaced
    by q T_j - p T_i, which has the same rank and the same zeros. The other numbers are those of any
    field that contains the rational numbers.
    """
    tensor, known = view_tensor(argument.view, entries)
    removals, nodes = argument.removals, argument.nodes
    most = max(len(removals), len(argument.split))
    sized = len(nodes) and nodes.min() >= 0 and nodes.max() <= most
    require(sized, "a tree must have nodes, with numbers of steps")
    require_at_most("nodes of a tree", len(nodes), MOST_NODES)
    require(nodes[:, 0].sum() == len(removals), "each removal must be of one node")
    require(
        nodes[:, 1].sum() == len(argument.split), "each slice that is split must be of one node"
    )
    entries.budget.spend(
        (ENTRY * tensor.size + CASE * max(1, entries.order // 8)) * (len(removals) + len(nodes)),
        12 * tensor.size * (len(nodes) + 2),
    )
    root = State.of(tensor, known)
    pairs: list[tuple[int, int]] = [(mode, index) for mode, index in removals.tolist()]
    steps, splits = iter(pairs), iter(cast("list[int]", argument.split.tolist()))
    # states of the nodes to come, and the steps that are still needed there
    stack = [(root, argument.value)]
    for number, (n_steps, n_splits) in enumerate(nodes.tolist(), 1):
        require(stack, "a node is no case of another")
        state, needed = stack.pop()
        taken = [next(steps) for _ in range(n_steps)]
        split = [next(splits) for _ in range(n_splits)]
        require(n_steps > 0 or not split, "multipliers are those of a removal")
        for mode, index in taken[: n_steps - bool(split)]:
            (state,) = removed(state, mode, index, [])
        if not split:
            require(n_steps >= needed, f"a path of the tree lacks {needed - n_steps} steps")
            continue
        places = tensor.size * len(split)
        entries.budget.spend(RATIO * places, RATIO_BYTES * places)
        # no more than there are nodes left
        children = removed(state, *taken[-1], split, most=len(nodes) - number - len(stack))
        stack += [(child, needed - n_steps) for child in reversed(children)]
    require(not stack, "a case of the tree is missing")
    return argument.view.indices


def removed(
    state: State, mode: int, index: int, split: list[int], *, most: int = MOST_NODES
) -> list[State]:
    """Return what is known after a slice is removed, in each case of some slices' multipliers.

    Parameters
    ----------
    state : State
        What is known before.
    mode, index : int
        The slice; it must remain, and be known to be nonzero.
    split : list of int
        Other slices of the mode.
    most : int
        Largest number of cases.
    """
    require(0 <= mode < len(state.alive), f"a mode must be from 0 to {len(state.alive) - 1}")
    alive = state.alive[mode]
    inside = all(0 <= i < len(alive) and alive[i] for i in (index, *split))
    require(inside and len({index, *split}) == 1 + len(split), "a slice isn't there")
    gone, values = state.slice(mode, index)
    live = state.live(mode)
    nonzero = ((gone == VALUE) | (gone == NONZERO)) & live
    require(nonzero.any(), f"slice {index} of mode {mode} isn't known to be nonzero")
    kept = [state.slice(mode, j) for j in split]
    ratios = [ratios_of(status, numbers, gone, values, live) for status, numbers in kept]
    require(math.prod(len(of) + 2 for of in ratios) <= most, "a case of the tree is missing")
    cases = [[Fraction(0), *sorted(Fraction(b, a) for b, a in of.tolist()), OTHER] for of in ratios]
    found: list[State] = []
    for chosen in itertools.product(*cases):
        after = state.copy()
        after.alive[mode][index] = False
        np.moveaxis(after.status, mode, 0)[:, gone != ZERO] = UNKNOWN
        for j, (before, numbers), c in zip(split, kept, chosen, strict=True):
            status, its = after.slice(mode, j)
            status[:], its[:] = subtracted(before, numbers, gone, values, c)
        found.append(after)
    return found


def ratios_of(
    status: NDArray[np.int8], values: Indices, gone: NDArray[np.int8], by: Indices, live: Mask
) -> Indices:
    """Return the different ratios of known entries, in lowest terms: pairs (p, q) with q > 0."""
    both = live & (status == VALUE) & (gone == VALUE)
    b, a = values[both], by[both]
    common = np.gcd(a, b) * np.sign(a)
    p, q = b // common, a // common
    order = np.lexsort((q, p))
    pairs = np.stack([p[order], q[order]], axis=1)
    new = np.ones(len(pairs), bool)
    new[1:] = (pairs[1:] != pairs[:-1]).any(axis=1)
    return pairs[new]


def subtracted(
    status: NDArray[np.int8],
    values: Indices,
    gone: NDArray[np.int8],
    by: Indices,
    c: Multiplier,
) -> tuple[NDArray[np.int8], Indices]:
    """Return what is known of q T_j - p T_i, with c = p/q, or of T_j - c T_i with another c."""
    if c == 0:
        return status, values
    there = (gone == VALUE) | (gone == NONZERO)
    valued = (gone == VALUE) & ((status == VALUE) | (status == ZERO))
    after = np.where(there & (status == ZERO), NONZERO, np.where(gone != ZERO, UNKNOWN, status))
    if c is None:
        after[valued] = NONZERO
        return after.astype(np.int8), values
    p, q = c.numerator, c.denominator
    largest = max(abs(p), q, int(np.abs(values).max()), int(np.abs(by).max()))
    exact = np.int64 if largest < EXACT else object
    difference = q * values.astype(exact) - p * np.where(gone == VALUE, by, 0).astype(exact)
    after[valued] = np.where(difference[valued] != 0, VALUE, ZERO)
    numbers = np.where(after == VALUE, difference, 0)
    require((np.abs(numbers) < LARGEST).all(), "an entry becomes too large")
    return after.astype(np.int8), numbers.astype(np.int64)


# not as `removals`, which may follow an unfolding, and whose values add
KIND = Kind(Cases, lower=check_cases, below_complex=True)
