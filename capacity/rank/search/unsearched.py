"""Certificates over another field: those that hold there, or bounds that need no search."""

from __future__ import annotations

from dataclasses import replace

from capacity.rank.bounds import database_bounds
from capacity.rank.effort import BUDGETS
from capacity.rank.method import holds
from capacity.rank.number_field import Field
from capacity.rank.search.assembly import effective_lower_end, lower_end, upper_end
from capacity.rank.search.effective_ledger import EffectiveLedger
from capacity.rank.search.rank_ledger import RankLedger
from capacity.rank.verifier.certificate import Certificate
from capacity.tensor.sparse import SparseTensor


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
