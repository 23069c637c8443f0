"""Orders of sparse substitution by a (1+1) evolution strategy.

A greedy order depends on the assumed costs of removing a slice (`Costs`). These numbers are drawn
at random at first; the best are changed at random then, and changes are kept if the order is as
long as before, on a few islands at first. In the end, only the last steps of the best order are
made again. The entries of each slice of the mode with the fewest slices (such as predicates) have a
factor of their own: that decides which of them are abandoned first, so that others can remain.

References
----------
H.-G. Beyer, H.-P. Schwefel, Evolution strategies: a comprehensive introduction, 2002.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capacity.exact.types import Indices
from capacity.rank.lower.substitution.sparse.layout import SparseLayout
from capacity.rank.lower.substitution.sparse.orders import Costs, sparse_order

Vector = NDArray[np.float64]

# sets of random traits, of which the best ones are evolved, fewer of them in each of the rounds
RANDOM, ISLANDS = 24, (4, 2, 1)
# share of the orders that are made from the start, and the largest part of one that is made anew
WHOLE, LAST = 0.6, 0.5
# deviations of changes, in relation to those of random traits; shares of the factors changed
STEPS, CHANGED = (0.05, 0.15, 0.5), (0.05, 0.3, 1.0)
NOISE = 0.01


@dataclass(frozen=True)
class Traits:
    """Parameters that `Costs` follow from.

    Attributes
    ----------
    numbers : ndarray of float64, shape (10,)
        Logarithms of `Costs.modes`, of the cost of a fiber for each slice that it crosses, of
        `Costs.own`, of `Costs.whole`, and of the share of the second mode, which has the fewest
        slices, in the cost of an entry. Then, for each mode, the power of a slice's number of
        entries that the cost of an entry falls with.
    factors : ndarray of float64, shape (n,)
        Logarithms of the factors for the slices of the second mode.
    """

    numbers: Vector
    factors: Vector


# means and deviations of random traits; found on the generated graphs of the benchmark real_graphs
# and on ontologies; the second is for the mode with the fewest slices
MEANS = np.array([-1.0, 0.8, -1.0, -4.0, -0.7, 2.0, 0.3, 0.7, 0.7, 0.7])
DEVIATIONS = np.array([0.6, 0.8, 0.6, 2.0, 1.2, 1.2, 1.0, 0.5, 0.5, 0.5])


def evolved(
    layout: SparseLayout, n: int, rng: np.random.Generator
) -> Iterator[tuple[Indices, Traits]]:
    """Yield n orders by evolving traits, and by making the end of the best order again.

    Parameters
    ----------
    layout : SparseLayout
        The entries, with the mode of the fewest slices in the middle.
    n : int
        Number of orders.
    rng : Generator
        Source of what is drawn.

    Yields
    ------
    order : ndarray of int64
        Slices in the order of their removal, numbered through all modes.
    traits : Traits
        What the costs followed from.
    """
    best = np.zeros(0, np.int64)
    found: list[tuple[int, Traits]] = []
    for _ in range(max(1, min(RANDOM, n // 4))):
        traits = _random_traits(layout.shape, rng)
        order = sparse_order(layout, costs_of(traits, layout, rng), best[:0])
        found.append((len(order), traits))
        best = max(best, order, key=len)
        yield order, traits
    each = (int(WHOLE * n) - len(found)) // len(ISLANDS)
    for islands in ISLANDS:
        found = sorted(found, key=lambda one: -one[0])[:islands]
        for number, (length, traits) in enumerate(found):
            for _ in range(each // islands):
                changed = changed_traits(traits, rng)
                order = sparse_order(layout, costs_of(changed, layout, rng), best[:0])
                if len(order) >= length:
                    length, traits = len(order), changed
                best = max(best, order, key=len)
                yield order, changed
            found[number] = length, traits
    _, traits = max(found, key=lambda one: one[0])
    for _ in range(n - int(WHOLE * n)):
        start = best[: int(len(best) * (1 - rng.uniform(0, LAST)))]
        changed = changed_traits(traits, rng)
        order = sparse_order(layout, costs_of(changed, layout, rng), start)
        # of equally long orders the last, so that steps can drift
        best = max(order, best, key=len)
        yield order, changed


def _random_traits(shape: Indices, rng: np.random.Generator) -> Traits:
    return Traits(MEANS + DEVIATIONS * rng.standard_normal(len(MEANS)), np.zeros(int(shape[1])))


def changed_traits(traits: Traits, rng: np.random.Generator) -> Traits:
    """Change about half of the numbers, and some of the factors, at random."""
    step = rng.choice(STEPS)
    numbers = rng.standard_normal(len(MEANS)) * (rng.random(len(MEANS)) < 0.5)
    n = len(traits.factors)
    factors = rng.standard_normal(n) * (rng.random(n) < rng.choice(CHANGED))
    return Traits(traits.numbers + step * DEVIATIONS * numbers, traits.factors + 2 * step * factors)


def costs_of(traits: Traits, layout: SparseLayout, rng: np.random.Generator) -> Costs:
    """Return the costs that follow from traits, with ties decided at random."""
    scales, powers = np.exp(traits.numbers[:7]), np.maximum(traits.numbers[7:], 0)
    sizes = np.diff(layout.in_slice[1]).astype(np.float64)
    entries = (np.array([1, scales[6], 1]) * sizes[layout.slices] ** -powers).sum(axis=1)
    entries *= np.exp(traits.factors)[layout.slices[:, 1] - layout.shape[0]]
    return Costs(
        entries / entries.mean(),
        min(1.0, float(scales[4])),
        scales[3] * layout.shape,
        float(scales[5]),
        scales[:3],
        NOISE * rng.random(len(layout.modes)),
    )
