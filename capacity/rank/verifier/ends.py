"""Certificates that an argument stands for: one, both ends of an interval, or several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from capacity.errors import CertificateError, InvalidTypeError
from capacity.limits import shown
from capacity.rank.verifier.certificate import Certificate


class TwoEnds(Protocol):
    """A lower and an upper bound of one quantity, such as a `RankInterval`."""

    @property
    def lower(self) -> Certificate:
        """The certificate of the lower bound."""
        ...

    @property
    def upper(self) -> Certificate:
        """The certificate of the upper bound."""
        ...


def each_certificate(
    given: Certificate | TwoEnds | Iterable[Certificate],
) -> tuple[Certificate, ...]:
    """Return the certificates that an argument stands for, at least one.

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
    lower, upper = (getattr(given, side, None) for side in ("lower", "upper"))
    if type(lower) is Certificate and type(upper) is Certificate:
        if (lower.side, upper.side) != ("lower", "upper") or lower.quantity != upper.quantity:
            raise CertificateError(
                "The ends of an interval must be certificates of a lower and of an upper bound of "
                f"one quantity; got {shown(lower.side)} and {shown(upper.side)} bounds of "
                f"{shown(lower.quantity)} and {shown(upper.quantity)}."
            )
        return lower, upper
    several = tuple(given) if isinstance(given, Iterable) else (given,)
    if not all(type(one) is Certificate for one in several):
        raise InvalidTypeError(
            "The first argument must be a Certificate, a RankInterval for both of its ends, or "
            f"several certificates; got {shown(given)}."
        )
    if not several:
        raise CertificateError("There must be a certificate; got none.")
    return several  # type: ignore[return-value]
