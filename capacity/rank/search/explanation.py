"""Explanations of an interval: the methods behind its ends, the gap, and its reasons."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from capacity.exact.types import Indices
from capacity.rank.lower.koszul import highest_bound
from capacity.rank.method import value_of
from capacity.rank.reductions.subtensor import Part
from capacity.rank.search.assembly import Words, above, below
from capacity.rank.search.effective_ledger import EffectiveLedger
from capacity.rank.search.rank_ledger import RankLedger


@dataclass(frozen=True)
class Open:
    """Entries whose interval is open.

    Attributes
    ----------
    what : str
        Their number, in words.
    shape : tuple of int
        Numbers of indices in each mode.
    lower, upper : int
        Ends of the interval.
    notes : tuple of str
        Further sentences: why the entries weren't searched, or a bound of theirs that doesn't add.
    flattened : bool
        True if flattenings are tried, which need a dense tensor with all entries known.
    border : bool
        Whether the border rank is bounded.
    """

    what: str
    shape: tuple[int, ...]
    lower: int
    upper: int
    notes: tuple[str, ...] = ()
    flattened: bool = True
    border: bool = False

    def in_words(self) -> list[str]:
        """Describe the entries and what stopped the search, in one line each."""
        sides = " x ".join(f"{n:,}" for n in self.shape)
        ends = f"[{self.lower:,}, {self.upper:,}]"
        lines = [f"{self.what}, {sides}, in {ends}", *self.notes]
        if len(self.shape) != 3:
            return lines
        # an entry of the slice that is removed lies in one slice of each of the other modes
        slices = sum(self.shape) - 2
        by_substitution = (
            "the substitution method could"
            if slices >= self.upper
            else f"the substitution method no more than {slices:,}, the number of slices but two"
        )
        if self.border:
            by_substitution = "no other kind of argument bounds the border rank"
        if self.flattened and (highest := highest_bound(self.shape)) < self.upper:
            lines.append(
                f"unfoldings and the Koszul flattenings tried can't prove more than {highest:,}; "
                f"{by_substitution}"
            )
        elif not self.flattened and slices < self.upper:
            lines.append(
                f"unfoldings, independent sets and substitution can't prove more than {slices:,}, "
                "the number of slices but two: the upper end would have to fall"
            )
        return lines


def contributions(values: Indices, methods: Words) -> str:
    """List the share of a bound that each method proves, with its number of components.

    Parameters
    ----------
    values : ndarray of int64, shape (n_components,)
        Bound of each component.
    methods : ndarray of str, shape (n_components,)
        Name of the method that proves it.

    Returns
    -------
    str
        The shares, the largest first.

    Examples
    --------
    >>> contributions(np.array([3, 1, 1]), np.array(["flip graph", "slices", "slices"], object))
    '3 by flip graph, 2 by slices on 2 components'
    """
    parts: list[tuple[int, str]] = []
    for method in sorted(set(methods.tolist())):
        mine = methods == method
        where = f" on {mine.sum():,} components" if mine.sum() > 1 else ""
        parts.append((int(values[mine].sum()), f" by {method}{where}"))
    return ", ".join(f"{value:,}{words}" for value, words in sorted(parts, reverse=True))


def explained(
    lower: tuple[Indices, Words],
    upper: tuple[Indices, Words],
    widest: Open | None,
    n_open: int = 1,
    n_components: int = 1,
) -> tuple[str, ...]:
    """Explain both bounds, and the gap between them.

    Parameters
    ----------
    lower, upper : (values, methods)
        Summands of the bounds, and the names of their methods.
    widest : Open or None
        The component with the widest gap; None if the interval is closed.
    n_open, n_components : int
        Number of components whose interval is open, and of all.

    Returns
    -------
    tuple of str
        One line for each bound, and one or more for the gap.
    """
    lines = [
        f"at least {lower[0].sum():,}: {contributions(*lower)}",
        f"at most {upper[0].sum():,}: {contributions(*upper)}",
    ]
    if widest is None:
        return tuple(lines)
    first, *others = widest.in_words()
    several = n_components > 1
    open_ = f"{n_open:,} of {n_components:,} components; the widest, " if several else ""
    return (*lines, f"open: {open_}{first}", *others)


def explain_rank(ledger: RankLedger, upper: int, entries: str) -> tuple[str, ...]:
    """Explain the bounds of the rank, whose certified upper end is given, and the gap between them.

    `entries` is the word for what the tensor holds.

    That end is larger than the ledger's where a block is too large to factor: it takes a simple
    tensor for each of its rows or columns, instead of as many as its rank.
    """
    lower, rests_on, _ = below(ledger)
    if not len(lower):
        return ("the tensor is zero",)
    more = upper - int(ledger.upper.sum())
    gaps = ledger.upper - lower
    c = int(gaps.argmax())
    rows = np.flatnonzero(ledger.bounds.component == c)
    bounds = int(lower[c]), int(ledger.upper[c])
    notes = (ledger.left_out[c],) if c in ledger.left_out else ()
    if ledger.best(c) > lower[c]:
        found, by = ledger.strong[c]
        notes += (f"at least {value_of(found):,} on its own, by {by}, which doesn't add",)
    shape = Part.of(ledger.tensor, rows).shape
    widest = Open(
        f"{len(rows):,} {entries}", shape, *bounds, notes, c in ledger.dense, ledger.border
    )
    others = [(more, "lines of blocks that are too large to factor")] if more else []
    lines = explained(
        (lower, rests_on),
        (
            np.array([*ledger.upper, *(n for n, _ in others)]),
            np.array([*above(ledger), *(by for _, by in others)], object),
        ),
        widest if gaps[c] > 0 else None,
        int((gaps > 0).sum()),
        len(lower),
    )
    proved = f"the ranks of slices yield {upper - more:,}, which no certificate here shows"
    return (*lines, proved) if more else lines


def explain_effective(ledger: EffectiveLedger, entries: str) -> tuple[str, ...]:
    """Explain the bounds of the effective rank of facts or entries, and the gap between them."""
    lower, upper = ledger.value()
    value, by = 0, ""
    if ledger.below is not None:
        _, found, by = ledger.below
        value = value_of(found)
    parts = [(lower - value, "the rank of the observed fibers"), (value, by)]
    values = np.array([value for value, _ in parts if value])
    methods = np.array([name for value, name in parts if value], object)
    words = ledger.above[1]
    rests_on = words if upper < ledger.of_rank else f"the rank's upper bound ({words})"
    rows = np.arange(ledger.tensor.n_entries)
    shape, words = Part.of(ledger.tensor, rows).shape, f"{len(rows):,} {entries}"
    left = Open(words, shape, lower, upper, ledger.notes, flattened=False)
    return explained(
        (values, methods),
        (np.array([upper]), np.array([rests_on], object)),
        left if lower < upper else None,
    )
