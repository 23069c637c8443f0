"""Troubles of an endpoint, distinguished: those that pass, and errors that state what to do."""

from __future__ import annotations

import time
from contextlib import suppress
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

from capacity.checks import cut, in_a_line
from capacity.database.io.sparql.endpoints import PASSWORD, TOKEN, USER, Credentials
from capacity.errors import EndpointError

# characters of an endpoint's own words in a message
WORDS = 300
_BUSY = (429, 502, 503, 504)
# a query that Virtuoso cut off
_STATE, _MESSAGE = "X-SQL-State", "X-SQL-Message"


class BusyError(Exception):
    """The endpoint may answer if it is asked once more.

    Parameters
    ----------
    reason : str
        What happened.
    pause : float, optional
        Seconds that it asks to wait.
    """

    def __init__(self, reason: str, pause: float | None = None) -> None:
        self.reason, self.pause = reason, pause
        super().__init__(reason)


def require_answer(
    name: str, status: int, headers: Any, said: str, *, known: bool, credentials: Credentials
) -> None:
    """Refuse what isn't an answer to a query, or states itself that it isn't whole.

    Parameters
    ----------
    name : str
        Name of the endpoint.
    status : int
        Status of the answer.
    headers : mapping of str to str
        Its headers.
    said : str
        Beginning of its body, if that isn't an answer.
    known : bool
        Whether the credentials were sent.
    credentials : Credentials
        What no message may show, and what may help.

    Raises
    ------
    BusyError
        If the same query may be answered later.
    EndpointError
        If the status isn't 200, or a header reports that a part is missing.
    """
    if status in _BUSY:
        raise BusyError(f"it answered {_named(status)}", retry_after(headers.get("Retry-After")))
    if status != 200:
        words = "".join(c if c.isprintable() else " " for c in credentials.hidden(said))
        what = f"it answered {_named(status)}" + (f": {words:.{WORDS}}" if words else "")
        raise EndpointError(name, what, _advice(status, known, credentials))
    if headers.get(_STATE):
        words = credentials.hidden(headers.get(_MESSAGE, "nothing more"))
        raise EndpointError(
            name,
            f"its header marks the answer as incomplete ({_STATE} {headers[_STATE]:.20}): "
            f"{words:.{WORDS}}",
            "Ask for fewer facts.",
        )


def _advice(status: int, known: bool, credentials: Credentials) -> str:
    variables = f"{USER} and {PASSWORD}, or {TOKEN}, in the environment."
    if status in (401, 403):
        if not credentials.header:
            return f"Set {variables}"
        if known:
            return f"Check {variables}"
        return (
            "The credentials in the environment weren't sent: they go to the endpoint's own host "
            "alone, and over https alone, but for this machine."
        )
    if status == 400:
        return "Fix the query."
    if status in (404, 405, 410):
        return "Pass the address that takes queries by POST."
    return "Ask for fewer facts, or ask again later."


def failed(
    name: str, error: Exception, kinds: Any, *, timeout: float, answered: bool, hidden: Any
) -> Exception:
    """Make the error of a connection that failed, or one that asks for another try.

    Parameters
    ----------
    name : str
        Name of the endpoint.
    error : Exception
        Error of urllib3.
    kinds : module
        urllib3's exceptions.
    timeout : float
        Seconds that the endpoint may be silent.
    answered : bool
        Whether it has answered before.
    hidden : callable
        Function that removes secrets from a text.
    """
    if isinstance(error, kinds.NewConnectionError) and answered:
        # it was there, and may come back
        return BusyError("it can't be reached any more")
    if isinstance(error, kinds.NewConnectionError | kinds.ConnectTimeoutError):
        cause = error.__cause__
        why = cut(in_a_line(cause if isinstance(cause, Exception) else error))
        return EndpointError(
            name, f"it can't be reached ({why})", "Check the address, and that the endpoint runs."
        )
    if isinstance(error, kinds.TimeoutError):
        return EndpointError(
            name,
            f"it was silent for {timeout:g} seconds",
            "Ask for fewer facts, or raise `timeout`.",
        )
    if isinstance(error, kinds.SSLError):
        return EndpointError(
            name,
            f"its identity can't be proved ({hidden(in_a_line(error))})",
            "Check the address; certificates are never passed over.",
        )
    if isinstance(error, kinds.ProtocolError):
        return BusyError("its connection broke")
    return EndpointError(
        name, f"it can't be asked ({hidden(in_a_line(error))})", "Check the address."
    )


def retry_after(value: str | None) -> float | None:
    """Read the seconds that Retry-After asks for, in seconds or as a date; None if it is empty.

    Examples
    --------
    >>> retry_after("5"), retry_after("Wed, 21 Oct 2015 07:28:00 GMT"), retry_after("soon")
    (5.0, 0.0, None)
    """
    if value is None:
        return None
    if value.strip().isdecimal():
        return float(value)
    with suppress(ValueError, TypeError, OverflowError):
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    return None


def _named(status: int) -> str:
    with suppress(ValueError):
        return f"{status} ({HTTPStatus(status).phrase})"
    return str(status)
