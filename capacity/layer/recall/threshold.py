"""The threshold that an object's logit or probability must pass for its fact to be recalled."""

from __future__ import annotations

from typing import Literal, SupportsFloat, TypeAlias

from capacity.checks import nearest, shown
from capacity.errors import InvalidArgumentError

# a probability, which has to be exceeded if it is 0.5, or an argmax
# (`capacity.evaluator.accuracy`)
Threshold: TypeAlias = float | Literal["argmax", "argmax_paper"]


def check_threshold(tau: Threshold) -> None:
    """Refuse what is neither 'argmax', 'argmax_paper', 0.5 nor strictly between 0.5 and 1.

    Raises
    ------
    InvalidArgumentError
        For another value.
    """
    if isinstance(tau, str) and tau not in ("argmax", "argmax_paper"):
        hint = nearest(tau, ("argmax", "argmax_paper"))
        raise InvalidArgumentError(
            f"`tau` must be a number, 'argmax' or 'argmax_paper'; got {shown(tau)}.{hint}"
        )
    if not isinstance(tau, str) and tau != 0.5:
        check_tau(tau)


def check_tau(tau: float) -> None:
    """Raise an InvalidArgumentError unless tau lies strictly between 0.5 and 1."""
    if isinstance(tau, str) or not isinstance(tau, SupportsFloat):
        raise InvalidArgumentError(
            f"`tau` must be a number strictly between 0.5 and 1; got {shown(tau)}."
        )
    if not 0.5 < tau < 1:
        advice = (
            "At 0.5 two objects can pass at once." if tau <= 0.5 else "No probability reaches 1."
        )
        raise InvalidArgumentError(
            f"`tau` must lie strictly between 0.5 and 1; got {tau}. {advice}"
        )
