"""The substitution method on entries that are too many for a dense tensor.

Greedy orders of the slices are evolved (`sparse_evolution`). Dense parts of a graph have more
independent slices than such an order removes, so slices are then removed several at once
(`sparse_blocks`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from capacity.exact.block_rank import PRIME
from capacity.exact.types import Indices
from capacity.rank.lower.substitution.sparse.layout import SparseLayout
from capacity.rank.method import Component, Goal, Method
from capacity.rank.reductions.subtensor import Finding, Part
from capacity.rank.verifier.argument import View
from capacity.rank.verifier.budget import steps_of_rank
from capacity.rank.verifier.kinds.block_substitution import BlockSubstitution
from capacity.rank.verifier.kinds.substitution import Substitution
from capacity.rank.verifier.procedures.sparse_removals import cost_of_sparse_removals

if TYPE_CHECKING:
    from capacity.rank.lower.substitution.sparse.blocks import Block

# entries from which on this does better than dense methods in their time
FEWEST_ENTRIES = 100
# nanoseconds of an order for each entry
AN_ENTRY = 1_000
# parts of the work for orders, and for blocks in them; most trials of blocks for each order
ORDERS, BLOCKS, TRIALS = 4, 2, 0.25
# steps in which the verifier eliminates a row or an entry of a minor
ELIMINATED = 3_000


def sparse_orders(component: Component, goal: Goal) -> Iterable[Finding]:
    """Evolve greedy orders of the slices of a component, and yield each that is longer."""
    n = len(component.rows)
    work = goal.work // (ORDERS + BLOCKS)
    orders = min(goal.limits.evolved, ORDERS * work // (AN_ENTRY * n))
    if not orders:
        return
    from capacity.rank.lower.substitution.sparse.evolution import evolved

    part = Part.of(component.tensor, component.rows)
    slices = sum(part.shape)
    without, memory = cost_of_sparse_removals(n, 3, slices, 0)
    component.spend(without, memory)
    # the mode with the fewest slices in the middle, where predicates are
    modes = np.argsort(part.shape, kind="stable")[[1, 0, 2]]
    layout = SparseLayout.of(part.places[:, modes])
    view = View(part.indices)
    value, rng = goal.lower, np.random.default_rng(goal.seed)
    best, traits = np.zeros(0, np.int64), None
    for order, costs in evolved(layout, orders, rng):
        if len(order) > len(best):
            best, traits = order, costs
        if len(order) > value:
            value = len(order)
            yield (Substitution(view, _removals(layout, modes, order)),)
        if value >= goal.upper:
            return
    if traits is None:
        return
    from capacity.rank.lower.substitution.sparse.blocks import LONGEST, MOST_BLOCKS, with_blocks

    minors = [slices // MOST_BLOCKS + 1] * MOST_BLOCKS
    steps, memory = cost_of_sparse_removals(n, 3, slices, 0, minors)
    steps += MOST_BLOCKS * steps_of_rank(LONGEST, LONGEST) + ELIMINATED * (n + slices)
    component.spend(steps - without, memory)
    values = component.tensor.values[component.rows]
    trials = int(TRIALS * goal.limits.evolved)
    for found in with_blocks(layout, values, (best, traits), trials, BLOCKS * work, rng):
        if len(found.order) > value:
            value = len(found.order)
            yield (_argument(part, _removals(layout, modes, found.order), found.blocks),)
        if value >= goal.upper:
            return


def _argument(part: Part, removals: Indices, blocks: tuple[Block, ...]) -> BlockSubstitution:
    """Write removals with blocks as an argument."""
    columns = [
        # places in the other modes, in ascending order of modes
        np.delete(part.places[block.columns], removals[block.first, 0], axis=1)
        for block in blocks
    ]
    return BlockSubstitution(
        View(part.indices),
        removals,
        np.array([(block.first, len(block.columns)) for block in blocks], np.int64),
        np.concatenate(columns),
        np.array([block.eliminated for block in blocks], np.int64),
        PRIME,
    )


def _removals(layout: SparseLayout, modes: Indices, order: Indices) -> Indices:
    """Pairs (mode, index) of slices, for modes that were put in another order."""
    first = np.cumsum(layout.shape) - layout.shape
    of = layout.modes[order]
    return np.stack([modes[of], order - first[of]], axis=1)


SPARSE_SUBSTITUTION = Method(
    "sparse substitution",
    find_in_entries=sparse_orders,
    sides=("lower",),
    limit="evolved",
    times=ORDERS + BLOCKS,
    fewest=FEWEST_ENTRIES,
    adds=True,
)
