"""Selection while facts are read, and the policy after the selection."""

from __future__ import annotations

from capacity.database.choosing.selection import Selection
from capacity.database.facts import Database
from capacity.database.policy import MultiPolicy, check_policy, multi_valued_warning
from capacity.errors import (
    InvalidArgumentError,
    MultiValuedError,
    UnknownTokenError,
    warn_caller,
)


def selected_part(
    db: Database, selection: Selection, multi: MultiPolicy | None, name: str
) -> Database:
    """Select from the facts of a file, and apply the policy to those that stay.

    Parameters
    ----------
    db : Database
        All facts, under the policy ``keep``.
    selection : Selection
        The criteria.
    multi : MultiPolicy or None
        The policy; None is ``keep``, with a warning if there are multi-valued pairs.
    name : str
        Name of the file, for messages.

    Raises
    ------
    InvalidArgumentError
        If no fact stays, or for an unknown policy.
    UnknownTokenError
        If no predicate, class or namespace has a name, or several do.
    MultiValuedError
        Under the policy ``error``, or if the policy leaves no fact.
    """
    check_policy(multi or "keep", db.arity)
    try:
        part = db.select(**selection.options())
        if multi is not None:
            return part.with_policy(multi)
    except (InvalidArgumentError, MultiValuedError, UnknownTokenError) as error:
        raise type(error)(f"{name}: {error}") from None
    if not part.is_functional:
        said = multi_valued_warning(part.n_multi_valued_pairs, part.n_pairs, part.arity)
        warn_caller(said)
    return part
