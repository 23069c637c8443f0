"""Certificates of a ledger's bounds: their arguments and methods, over each field."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity.exact.types import Indices
from capacity.rank.bounds import database_bounds
from capacity.rank.lower.independent_sets import as_unfolding
from capacity.rank.method import BOUNDS, Method, holds
from capacity.rank.options import BUDGETS, Field
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.search.effective_ledger import EffectiveLedger
from capacity.rank.search.rank_ledger import START, RankLedger
from capacity.rank.upper.slices import sliced
from capacity.rank.verifier.argument import Argument
from capacity.rank.verifier.certificate import Certificate
from capacity.rank.verifier.kinds.boxes import Boxes
from capacity.rank.verifier.kinds.decomposition import Decomposition
from capacity.rank.verifier.kinds.unfolding import Unfolding
from capacity.tensor.sparse import SparseTensor

# for each component the name of a bound or a method
Words: TypeAlias = NDArray[np.object_]


def below(ledger: RankLedger) -> tuple[Indices, Words, dict[int, Finding]]:
    """Return the lower bound of each component, the name of its method, and arguments found."""
    unfoldings = ledger.bounds.unfoldings_by_component
    rests_on = np.full(len(ledger.lower), "unfolding", dtype=object)
    if ledger.sets is not None:
        rests_on[ledger.sets.values > unfoldings.max(axis=1)] = "independent sets"
    found = dict(ledger.additive)
    strongest = ledger.strongest()
    if strongest is not None:
        found[strongest] = ledger.strong[strongest]
    values = ledger.lower.copy()
    if ledger.border and strongest is not None:
        values[:], rests_on[:] = 0, ledger.strong[strongest][1]
    for c, (arguments, by) in found.items():
        rests_on[c] = by
        values[c] = sum(argument.value for argument in arguments)
    return values, rests_on, {c: arguments for c, (arguments, _) in found.items()}


def above(ledger: RankLedger) -> Words:
    """Return the name of the method that proves each component's upper bound."""
    rests_on = np.full(len(ledger.upper), "slices", dtype=object)
    if ledger.cover is not None:
        slices = ledger.bounds.slices_by_component.min(axis=1)
        rests_on[ledger.cover.values < slices] = "fiber cover"
    for c, (_, by) in ledger.above.items():
        rests_on[c] = by
    return rests_on


def lower_end(ledger: RankLedger, methods: Sequence[Method]) -> tuple[Finding, str]:
    """Return the arguments of the rank's lower bound, and the last of the methods used."""
    _, rests_on, found = below(ledger)
    arguments: list[Argument] = []
    if ledger.sets is not None:
        arguments += ledger.sets.arguments(ledger.tensor.shape, rests_on == "independent sets")
    for mode in range(ledger.tensor.order):
        mine = (rests_on == "unfolding") & (ledger.modes == mode)
        minor = ledger.bounds.minors[mode].of_groups(mine)
        arguments += as_unfolding(ledger.tensor.shape, mode, minor)
    arguments += [argument for some in found.values() for argument in some]
    return tuple(arguments), _most_advanced(rests_on, methods)


def upper_end(ledger: RankLedger, methods: Sequence[Method]) -> tuple[Finding, str]:
    """Return the arguments of the rank's upper bound, and the last of the methods used."""
    component = ledger.bounds.component
    rests_on = above(ledger)
    box, terms = sliced(
        ledger.tensor,
        ledger.bounds.slices_by_component.argmin(axis=1),
        component,
        np.flatnonzero((rests_on == "slices")[component]),
    )
    arguments: list[Argument] = []
    if ledger.cover is not None and (rests_on == "fiber cover").any():
        more, others, pairs = ledger.cover.decomposed(component, rests_on == "fiber cover")
        box = np.where(more < 0, box, more + box.max(initial=-1) + 1)
        terms += others
        arguments += pairs
    arguments += [Boxes(box)] if (box >= 0).any() else []
    for found, _ in ledger.above.values():
        for argument in found:
            if isinstance(argument, Decomposition):
                terms += argument.terms
            else:
                arguments.append(argument)
    if terms:
        arguments.append(Decomposition(tuple(terms)))
    return tuple(arguments), _most_advanced(rests_on, methods)


def effective_lower_end(ledger: EffectiveLedger) -> tuple[Finding, str]:
    """Return the arguments of the effective rank's lower bound, and the names of the methods."""
    others = np.ones(len(ledger.fibers), bool)
    if ledger.below is not None:
        others[ledger.bounds.component[ledger.below[0]]] = False
    last = ledger.tensor.order - 1
    first = as_unfolding(ledger.tensor.shape, last, ledger.bounds.minors[last].of_groups(others))
    if ledger.below is None:
        return first, "unfolding"
    _, found, by = ledger.below
    words = f"unfolding + {by}" if first else by
    if first and isinstance(found[0], Unfolding):
        # the effective rank takes one unfolding before the other argument, so two are joined
        return (_joined(found[0], first[0]), *found[1:]), words
    return (*first, *found), words


def _joined(first: Unfolding, second: Unfolding) -> Unfolding:
    """Join minors of different components to one; the first consists of single pivots."""
    # a complete part that peels in another mode is a matrix: its fibers give the same bound
    if first.mode != second.mode or len(first.blocks):
        raise AssertionError("minors are joined by observed fibers, with single pivots first")
    return Unfolding(
        first.mode,
        np.concatenate([first.rows, second.rows]),
        np.concatenate([first.columns, second.columns]),
        second.blocks,
        second.eliminated,
        second.prime,
    )


def _most_advanced(rests_on: Iterable[str], methods: Sequence[Method]) -> str:
    order = [*BOUNDS, *(method.name for method in methods), START]
    return max(rests_on, key=order.index, default="no entries")


def kept_over(end: Certificate, tensor: SparseTensor, field: Field, *, border: bool) -> Certificate:
    """Return a certificate of the same quantity over a field, or of the border rank.

    Parameters
    ----------
    end : Certificate
        Certificate of an end.
    tensor : SparseTensor
        Its tensor.
    field : {'Q', 'R', 'C'}
        The field.
    border : bool
        Whether the border rank is bounded.

    Returns
    -------
    Certificate
        With the arguments of `end`, if they hold, and else those of unfoldings or slices.
    """
    if holds(end.arguments, end.side, field, border=border):
        return replace(end, field=field, border=border)
    bounds = database_bounds(tensor)
    ledger = RankLedger(tensor, bounds, BUDGETS["quick"], 0, field=field, border=border)
    arguments, by = upper_end(ledger, ())
    value = sum(argument.value for argument in arguments)
    upper = replace(
        end, side="upper", value=value, by=by, arguments=arguments, groups=(), field=field,
        border=border,
    )  # fmt: skip
    if end.side == "upper":
        return upper
    if end.quantity == "rank":
        arguments, by = lower_end(ledger, ())
    else:
        arguments, by = effective_lower_end(
            EffectiveLedger(tensor, bounds, upper, BUDGETS["quick"], 0)
        )
    value = sum(argument.value for argument in arguments)
    return replace(upper, side="lower", value=value, by=by, arguments=arguments)
