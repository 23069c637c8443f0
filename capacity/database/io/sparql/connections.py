"""Connections to endpoints, and errors that name what went wrong with one."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

from capacity.checks import cut, in_a_line
from capacity.database.io.sparql.endpoints import PASSWORD, TOKEN, USER, Credentials, Endpoint
from capacity.errors import EndpointError
from capacity.optional import needed_by

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


class Connections:
    """Connections to the hosts that an endpoint's address leads to.

    Proxies of the environment aren't used, and certificates are always checked.

    Parameters
    ----------
    what : str
        Name of the function that needs them, for the message where urllib3 isn't installed.

    Attributes
    ----------
    exceptions : module
        urllib3's exceptions.
    """

    def __init__(self, what: str) -> None:
        with needed_by(what):
            import urllib3
        self._urllib3 = urllib3
        self.exceptions = urllib3.exceptions
        self._pools: dict[tuple[str, str, int], Any] = {}
        self._open: socket.socket | None = None

    def request(
        self,
        where: Endpoint,
        method: str,
        headers: Mapping[str, str],
        body: bytes | None,
        seconds: float,
    ) -> Any:
        """Send a request, and return the response of urllib3 before its body is read.

        Parameters
        ----------
        where : Endpoint
            Address.
        method : str
            Method of HTTP.
        headers : mapping of str to str
            Headers.
        body : bytes or None
            Body.
        seconds : float
            Seconds that the host may be silent.
        """
        return self._pool(where).urlopen(
            method,
            where.target,
            body=body,
            headers=headers,
            redirect=False,
            retries=False,
            preload_content=False,
            decode_content=False,
            timeout=self._urllib3.Timeout(connect=seconds, read=seconds),
        )

    def cut(self) -> None:
        """End the connection that another thread waits for."""
        if self._open is not None:
            with suppress(OSError):
                # beneath TLS, whose own state belongs to the other thread
                socket.socket.shutdown(self._open, socket.SHUT_RDWR)

    def close(self) -> None:
        """Close all connections."""
        for pool in self._pools.values():
            pool.close()

    def _pool(self, where: Endpoint) -> Any:
        if where.host not in self._pools:
            scheme, host, port = where.host
            if scheme == "https":
                pool = self._urllib3.HTTPSConnectionPool(
                    host, port, ssl_context=ssl.create_default_context()
                )
            else:
                pool = self._urllib3.HTTPConnectionPool(host, port)
            pool.ConnectionCls = _watched(pool.ConnectionCls, self._opened)
            self._pools[where.host] = pool
        return self._pools[where.host]

    def _opened(self, connection: socket.socket) -> None:
        self._open = connection


def _watched(base: Any, opened: Callable[[socket.socket], None]) -> Any:
    """Return the kind of connection that reports each socket that it opens."""

    class Watched(base):
        def connect(self) -> None:
            super().connect()
            opened(self.sock)

    return Watched
