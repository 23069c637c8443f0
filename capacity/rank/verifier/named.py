"""The tensor that a certificate is about, by its own hash or by that of a database's facts."""

from __future__ import annotations

from capacity.checks import shown
from capacity.database.facts import Database
from capacity.errors import InvalidArgumentError
from capacity.rank.verifier.certificate import Certificate
from capacity.rank.verifier.entries import LARGEST_VALUE, require
from capacity.tensor.sparse import SparseTensor


def tensor_of(value: Database | SparseTensor) -> SparseTensor:
    """Return a tensor whose rank is bounded, or that of a database.

    Raises
    ------
    InvalidArgumentError
        If the tensor has a single mode, or an entry of 2^31 or more in absolute value.
    """
    if not isinstance(value, SparseTensor):
        return value.tensor()
    if value.order < 2:
        raise InvalidArgumentError(
            f"A tensor whose rank is bounded must have two modes or more; got shape {value.shape}."
        )
    if value.largest >= LARGEST_VALUE:
        raise InvalidArgumentError(
            "A tensor whose rank is bounded must have entries below 2^31 in absolute value; got "
            f"{shown(value.largest)}. Dividing by a common factor keeps the rank."
        )
    return value


def name_of(value: Database | SparseTensor) -> tuple[str, str | None]:
    """Return the hash by which certificates name facts or a tensor, and the policy of facts."""
    if isinstance(value, SparseTensor):
        return value.sha256, None
    return value.facts_sha256, value.multi


def in_words(sha256: str, multi: str | None) -> str:
    """Describe what a certificate is about, for a message."""
    if multi is None:
        return f"the tensor {sha256:.12}"
    return f"the facts {sha256:.12} with multi={multi:.60}"


def require_groups(certificate: Certificate, order: int, *, effective: bool) -> None:
    """End the check unless the groups of a certificate are groups of all modes, for its bound."""
    groups = certificate.groups
    require(certificate.side == "lower", "only a lower bound may take modes together")
    modes = sorted(mode for group in groups for mode in group)
    require(modes == list(range(order)), "each mode must be in one group")
    ascending = all(list(group) == sorted(group) and len(group) for group in groups)
    require(ascending and len(groups) > 1, "a group must hold modes in ascending order")
    last = not effective or (order - 1,) == groups[len(groups) - 1]
    require(last, "for the effective rank, the last mode must be a group of its own")
