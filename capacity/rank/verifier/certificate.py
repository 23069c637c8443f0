"""What a bound rests on, as plain data that goes to JSON and back without loss.

A `Certificate` names the quantity that is bounded, the facts it is about (by their hash, and the
policy for multi-valued pairs), and *arguments* whose values add up to the bound
(`capacity.rank.verifier.arguments`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from capacity.rank.verifier.argument import Argument, Side

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
        from capacity.rank.verifier.serialization import certificate_to_dict

        return certificate_to_dict(self)

    @classmethod
    def from_dict(cls, data: object) -> Certificate:
        """Read what `to_dict` wrote.

        Raises
        ------
        CertificateError
            If the data hasn't the form of a certificate.
        """
        from capacity.rank.verifier.serialization import certificate_from_dict

        return certificate_from_dict(data)
