"""Certificates of bounds, as plain data that goes to JSON and back without loss.

A `Certificate` names the quantity that is bounded, the facts it is about (by their hash, and the
policy for multi-valued pairs), and *arguments* whose values add up to the bound
(`capacity.rank.verifier.argument`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from capacity.errors import CertificateError
from capacity.limits import shown
from capacity.rank.verifier.argument import Argument, Side
from capacity.rank.verifier.argument_json import (
    argument_from_dict,
    argument_to_dict,
    field,
    mapping,
)

FORMAT = "capacity certificate 1"
Quantity: TypeAlias = Literal["rank", "effective_rank"]


@dataclass(frozen=True, eq=False)
class Certificate:
    """A bound and what it rests on.

    Attributes
    ----------
    quantity : {'rank', 'effective_rank'}
    side : {'lower', 'upper'}
    value : int
        The bound: the sum of the arguments' values.
    by : str
        What found it, in words.
    arguments : tuple of Argument
        `capacity.rank.verifier` says which of them add up.
    facts_sha256 : str
        `Database.facts_sha256` of the facts that the bound holds for.
    multi : str
        The policy for multi-valued pairs under which those facts were made.
    """

    quantity: Quantity
    side: Side
    value: int
    by: str
    arguments: tuple[Argument, ...]
    facts_sha256: str
    multi: str

    def to_dict(self) -> dict[str, Any]:
        """Write the certificate as JSON-ready data."""
        return {
            "format": FORMAT,
            "quantity": self.quantity,
            "side": self.side,
            "value": self.value,
            "by": self.by,
            "facts_sha256": self.facts_sha256,
            "multi": self.multi,
            "arguments": [argument_to_dict(argument) for argument in self.arguments],
        }

    @classmethod
    def from_dict(cls, data: object) -> Certificate:
        """Read what `to_dict` wrote.

        Raises
        ------
        CertificateError
            If the data hasn't the form of a certificate.
        """
        fields = mapping(data, "a certificate")
        if fields.get("format") != FORMAT:
            raise CertificateError(
                f"A certificate must have the format {FORMAT!r}; got {shown(fields.get('format'))}."
            )
        quantity, side = field(fields, "quantity", str), field(fields, "side", str)
        if quantity not in ("rank", "effective_rank") or side not in ("lower", "upper"):
            raise CertificateError(f"A certificate is of no {shown(quantity)}, {shown(side)}.")
        arguments = tuple(map(argument_from_dict, field(fields, "arguments", list)))
        for argument in arguments:
            if side not in argument.sides:
                raise CertificateError(f"{argument.kind!r} can't argue for a {side} bound.")
        return cls(
            quantity,
            side,
            field(fields, "value", int),
            field(fields, "by", str),
            arguments,
            field(fields, "facts_sha256", str),
            field(fields, "multi", str),
        )
