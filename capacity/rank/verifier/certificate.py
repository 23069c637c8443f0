"""Certificates of bounds, as plain data that is converted to JSON and back without loss.

A `Certificate` names the quantity that is bounded, the facts that it is about (by their hash, and
the policy for multi-valued pairs), and *arguments* whose values add up to the bound
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


@dataclass(frozen=True, eq=False, repr=False)
class Certificate:
    """A bound of the rank of some facts, with the arguments that prove it.

    Attributes
    ----------
    quantity : {'rank', 'effective_rank'}
        Quantity that is bounded.
    side : {'lower', 'upper'}
        Side on which it is bounded.
    value : int
        The bound: the sum of the arguments' values.
    by : str
        Name of the method that found the bound; a remark, which no check uses.
    arguments : tuple of Argument
        Arguments that prove the bound. The notes of `verify` say when their values may be added.
    facts_sha256 : str
        `Database.facts_sha256` of the facts that the bound holds for.
    multi : str
        Policy for multi-valued pairs under which those facts were made.
    """

    quantity: Quantity
    side: Side
    value: int
    by: str
    arguments: tuple[Argument, ...]
    facts_sha256: str
    multi: str

    def __repr__(self) -> str:
        bounded = f"{self.quantity.replace('_', ' ')} {'>=' if self.side == 'lower' else '<='}"
        return (
            f"Certificate({bounded} {self.value}, by {self.by:.60}; {len(self.arguments)} "
            f"arguments, facts {self.facts_sha256:.12})"
        )

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
        """Read a certificate that `to_dict` wrote.

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
            raise CertificateError(
                "A certificate must have the quantity rank or effective_rank and the side lower "
                f"or upper; got {shown(quantity)} and {shown(side)}."
            )
        arguments = tuple(map(argument_from_dict, field(fields, "arguments", list)))
        for argument in arguments:
            if side not in argument.sides:
                raise CertificateError(
                    f"An argument for a {side} bound must be of a kind that gives one; got "
                    f"{argument.kind!r}."
                )
        return cls(
            quantity,
            side,
            field(fields, "value", int),
            field(fields, "by", str),
            arguments,
            field(fields, "facts_sha256", str),
            field(fields, "multi", str),
        )
