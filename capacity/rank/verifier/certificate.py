"""Certificates of bounds, as plain data that is converted to JSON and back without loss.

A `Certificate` names the quantity that is bounded, the facts that it is about (by their hash, and
the policy for multi-valued pairs) or the tensor (by its hash), and *arguments* whose values add up
to the bound (`capacity.rank.verifier.argument`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from capacity.checks import shown
from capacity.errors import CertificateError, InvalidTypeError
from capacity.rank.options import FIELDS, Field
from capacity.rank.verifier.argument import Argument, Side
from capacity.rank.verifier.argument_json import (
    argument_from_dict,
    argument_to_dict,
    field,
    items,
    mapping,
)
from capacity.visible import visible

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
        Arguments that prove the bound. The notes of `verify` state when their values may be added.
    facts_sha256 : str
        `Database.facts_sha256` of the facts that the bound holds for or, if `multi` is None,
        `SparseTensor.sha256` of the tensor.
    multi : str or None
        Policy for multi-valued pairs under which those facts were made; None for a tensor.
    groups : tuple of tuple of int
        For a lower bound, modes that are taken together as one: the arguments are then about the
        tensor with a mode for each group (`capacity.tensor.grouped`). Empty for the tensor itself.
    field : {'R', 'Q', 'C'}
        Field over which the rank is bounded: the real, the rational or the complex numbers.
    border : bool
        True if the border rank is bounded, which is at most the rank.
    """

    quantity: Quantity
    side: Side
    value: int
    by: str
    arguments: tuple[Argument, ...]
    facts_sha256: str
    multi: str | None = None
    groups: tuple[tuple[int, ...], ...] = ()
    field: Field = "R"
    border: bool = False

    @property
    def what(self) -> str:
        """The quantity in words, such as ``border rank over C``."""
        words = f"{'border ' * self.border}{self.quantity.replace('_', ' ')}"
        return words if self.field == "R" else f"{words} over {self.field}"

    def __repr__(self) -> str:
        by = visible(self.by[:60])
        bounded = f"{self.what} {'>=' if self.side == 'lower' else '<='}"
        return (
            f"Certificate({bounded} {self.value}, by {by}; {len(self.arguments)} "
            f"arguments, {'tensor' if self.multi is None else 'facts'} {self.facts_sha256:.12})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Write the certificate as JSON-ready data."""
        if self.multi is None:
            about: dict[str, Any] = {"tensor_sha256": self.facts_sha256}
        else:
            about = {"facts_sha256": self.facts_sha256, "multi": self.multi}
        if self.groups:
            about["groups"] = [list(group) for group in self.groups]
        if self.field != "R":
            about["field"] = self.field
        if self.border:
            about["border"] = True
        return {
            "format": FORMAT,
            "quantity": self.quantity,
            "side": self.side,
            "value": self.value,
            "by": self.by,
            **about,
            "arguments": [
                argument_to_dict(argument, of_facts=self.multi is not None)
                for argument in self.arguments
            ],
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
                    f"An argument for a {side} bound must be of a kind that proves one; got "
                    f"{argument.kind!r}."
                )
        of_tensor = "tensor_sha256" in fields
        if of_tensor and fields.keys() & {"facts_sha256", "multi"}:
            raise CertificateError(
                "A certificate must be about a tensor (tensor_sha256) or about facts "
                "(facts_sha256, multi); got fields of both."
            )
        return cls(
            quantity,
            side,
            field(fields, "value", int),
            field(fields, "by", str),
            arguments,
            field(fields, "tensor_sha256" if of_tensor else "facts_sha256", str),
            None if of_tensor else field(fields, "multi", str),
            _groups(field(fields, "groups", list)) if "groups" in fields else (),
            _number_field(fields),
            field(fields, "border", bool) if "border" in fields else False,
        )


def _number_field(fields: Mapping[str, object]) -> Field:
    given = field(fields, "field", str) if "field" in fields else "R"
    if given not in FIELDS:
        raise CertificateError(
            f"`field` of a certificate must be one of {', '.join(FIELDS)}; got {shown(given)}."
        )
    return given


def _groups(data: list[object]) -> tuple[tuple[int, ...], ...]:
    groups = tuple(tuple(items(group, None, "each of `groups`")) for group in data)
    if not all(type(mode) is int for group in groups for mode in group):
        raise CertificateError("`groups` must hold lists of modes, which are integers.")
    return groups  # type: ignore[return-value]


class CertificatePair(NamedTuple):
    """The certificates of both ends of an interval.

    Attributes
    ----------
    lower, upper : Certificate
        Certificates of a lower and of an upper bound of one quantity.
    """

    lower: Certificate
    upper: Certificate


class TwoEnds(Protocol):
    """A holder of certificates of both of its ends, such as a `RankInterval`."""

    @property
    def certificates(self) -> CertificatePair:
        """The certificates of the lower and of the upper bound."""
        ...


def each_certificate(
    given: Certificate | TwoEnds | Iterable[Certificate],
) -> tuple[Certificate, ...]:
    """Return the certificates that an argument contains, at least one.

    Raises
    ------
    InvalidTypeError
        If it is neither a certificate, nor an interval, nor an iterable of certificates.
    CertificateError
        If there is none, or the ends of an interval aren't a lower and an upper bound of one
        quantity.
    """
    if type(given) is Certificate:
        return (given,)
    pair = getattr(given, "certificates", given)
    if isinstance(pair, CertificatePair) and all(type(end) is Certificate for end in pair):
        lower, upper = pair
        if (lower.side, upper.side) != ("lower", "upper") or lower.what != upper.what:
            raise CertificateError(
                "The ends of an interval must be certificates of a lower and of an upper bound of "
                f"one quantity; got {shown(lower.side)} and {shown(upper.side)} bounds of "
                f"the {shown(lower.what)} and the {shown(upper.what)}."
            )
        return lower, upper
    several = tuple(given) if isinstance(given, Iterable) else (given,)
    if not all(type(one) is Certificate for one in several):
        is_path = isinstance(given, str) or hasattr(given, "__fspath__")
        hint = " For a file, pass load_certificates(path)." if is_path else ""
        raise InvalidTypeError(
            "The first argument must be a Certificate, a RankInterval for both of its ends, or "
            f"several certificates; got {shown(given)}.{hint}"
        )
    if not several:
        raise CertificateError("There must be a certificate; got none.")
    return several  # type: ignore[return-value]
