"""What a bound rests on, as plain data.

A `Certificate` names the quantity that is bounded, the facts it is about (by their hash and the
policy for multi-valued pairs), and for each component the argument and the number that it gives.
Certificates go to JSON and back without loss. Two kinds of argument exist so far, both repeatable
in exact arithmetic from the facts alone:

``unfolding``
    rank(D) >= rank of an unfolding of D, since a sum of R simple tensors unfolds to a sum of R
    matrices of rank one. For the effective rank the object unfolding serves, restricted to the
    observed fibers: every representing tensor has these very columns.
``slices``
    rank(D) <= sum of the ranks of the slices of one mode (Wong 2025, Proposition 2.1).

A direct sum has rank at most the sum of its parts' ranks, and unfolding ranks of the parts, each in
the mode that suits it, add to a lower bound of the whole.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["unfolding", "slices"]
Side: TypeAlias = Literal["lower", "upper"]
Quantity: TypeAlias = Literal["rank", "effective_rank"]


@dataclass(frozen=True)
class Part:
    """One component's share of a bound: the mode the argument is made in, and what it gives.

    Parameters
    ----------
    first_fact : int
        First row of the component in ``Database.triples``; the component is what is connected to
        that row.
    n_facts : int
        Number of the component's facts.
    mode : int
        0 subject, 1 predicate, 2 object.
    value : int
    """

    first_fact: int
    n_facts: int
    mode: int
    value: int


@dataclass(frozen=True)
class Certificate:
    """A bound and what it rests on.

    Parameters
    ----------
    quantity : {'rank', 'effective_rank'}
    side : {'lower', 'upper'}
    kind : {'unfolding', 'slices'}
    value : int
        The bound: the sum of the parts' values.
    parts : tuple of Part
    facts_sha256 : str
        `Database.facts_sha256` of the facts that the bound holds for.
    multi : str
        The policy for multi-valued pairs under which those facts were made.
    """

    quantity: Quantity
    side: Side
    kind: Kind
    value: int
    parts: tuple[Part, ...]
    facts_sha256: str
    multi: str

    def to_dict(self) -> dict[str, Any]:
        """Write the certificate as JSON-ready data."""
        return {**asdict(self), "parts": [asdict(part) for part in self.parts]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Certificate:
        """Read what `to_dict` wrote."""
        parts = tuple(Part(**part) for part in data["parts"])
        return cls(**{key: value for key, value in data.items() if key != "parts"}, parts=parts)
