"""The protocol: a query is posted, and its answer read whole, within limits of time and size.

Only queries are sent, which change nothing, so that each may be asked again: after a pause where an
endpoint is busy (429, 502, 503, 504, with the pause that ``Retry-After`` asks for) or a connection
breaks, whether before or within an answer. What was read of a broken answer is thrown away.

References
----------
SPARQL 1.1 Protocol, W3C 2013, section 2.1.2 (a query by POST with URL-encoded parameters); RFC
9110, sections 10.2.3 (Retry-After) and 15.4 (redirection).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self, TypeVar
from urllib.parse import urlencode, urljoin

from capacity._version import __version__
from capacity.checks import require_seconds, shown
from capacity.database.io.sparql.bodies import Body
from capacity.database.io.sparql.connections import BusyError, Connections, failed, require_answer
from capacity.database.io.sparql.endpoints import (
    Credentials,
    Endpoint,
    credentials_of,
    endpoint_at,
)
from capacity.errors import CapacityError, EndpointError, InvalidArgumentError

# seconds before an endpoint is asked once more, unless it asks for others
PAUSES = (1.0, 2.0, 4.0, 8.0)
MOST_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_Read = TypeVar("_Read")


@dataclass(frozen=True)
class Answer:
    """An answer with the status 200, of which no byte of the body has been read.

    Attributes
    ----------
    media_type : str
        Type of its content, without parameters, in lower case.
    headers : mapping of str to str
        Its headers.
    framed : bool
        Whether the end of the body can be distinguished from a broken connection.
    body : callable
        Function of a look at the bytes that returns the `Body`.
    """

    media_type: str
    headers: Any
    framed: bool
    body: Callable[[Callable[[bytes], object]], Body]


class Client:
    """A connection to an endpoint; a context, at whose end nothing is open.

    Parameters
    ----------
    endpoint : Endpoint
        Where to ask.
    what : str
        Name of the function that asks, for the message where urllib3 isn't installed.
    timeout : float
        Seconds that the endpoint may be silent.
    deadline : float
        Seconds for everything that is asked in the context, pauses included.
    max_bytes : int
        Maximum of an answer, unpacked.
    say : callable
        Function that is called with what is waited for.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        what: str,
        *,
        timeout: float,
        deadline: float,
        max_bytes: int,
        say: Callable[[str], object] = lambda _text: None,
    ) -> None:
        self._connections = Connections(what)
        self.endpoint = endpoint
        self._credentials: Credentials = credentials_of()
        self._timeout = require_seconds("timeout", timeout)
        self._seconds = require_seconds("deadline", deadline)
        self._max_bytes = max_bytes
        self._say = say
        self._answered = False

    def __enter__(self) -> Self:
        self._end = time.monotonic() + self._seconds
        # a server that sends a byte now and then is never silent; this ends it
        self._alarm = threading.Timer(self._seconds, self._connections.cut)
        self._alarm.daemon = True
        self._alarm.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._alarm.cancel()
        self._connections.close()

    @property
    def name(self) -> str:
        """The endpoint's address, without what may be secret."""
        return self.endpoint.name

    def asked(self, query: str, accept: str, read: Callable[[Answer], _Read]) -> _Read:
        """Ask a query, and read its answer; both again where that may help.

        Parameters
        ----------
        query : str
            A query, no update.
        accept : str
            Media types that can be read.
        read : callable
            Function that reads an answer to its end; what it returned of a broken one is dropped.

        Raises
        ------
        EndpointError
            If the endpoint can't be reached, refuses the query, stays busy, is silent or too slow,
            sends too much, or reports that its answer isn't whole.
        CapacityError
            As `read` does.
        """
        reason = ""
        for pause in (*PAUSES, None):
            try:
                with self._answer(query, accept) as answer:
                    found = read(answer)
                self._answered = True
                return found
            except BusyError as busy:
                reason, wanted = busy.reason, busy.pause if busy.pause is not None else pause
            except CapacityError:
                self._check_deadline()
                raise
            if pause is not None and wanted is not None:
                self._wait(wanted, reason)
        raise EndpointError(
            self.name, f"{reason}, {len(PAUSES) + 1} times", "Ask again later, or for fewer facts."
        )

    def _wait(self, seconds: float, reason: str) -> None:
        if time.monotonic() + seconds > self._end:
            raise EndpointError(
                self.name,
                f"{reason}, and asks to wait {seconds:.0f} seconds, which the deadline of "
                f"{self._seconds:g} leaves no time for",
                "Ask again later, or raise `deadline`.",
            )
        self._say(f"waiting {seconds:.0f} s, for {reason}")
        time.sleep(seconds)

    @contextmanager
    def _answer(self, query: str, accept: str) -> Iterator[Answer]:
        """Post a query, follow redirects, and distinguish all troubles."""
        response = None
        try:
            where, method = self.endpoint, "POST"
            for _ in range(MOST_REDIRECTS + 1):
                response = self._requested(where, method, query, accept)
                if response.status not in _REDIRECTS:
                    break
                where = self._redirected(where, response)
                # 303 is the address of the result
                method = "GET" if response.status == 303 else method
                response.close()
            else:
                raise EndpointError(
                    self.name,
                    f"it redirects more than {MOST_REDIRECTS} times, the last time to {where.name}",
                    "Pass the address that answers.",
                )
            yield self._checked(where, response)
        except self._connections.exceptions.HTTPError as error:
            self._check_deadline()
            raise failed(
                self.name,
                error,
                self._connections.exceptions,
                timeout=self._timeout,
                answered=self._answered,
                hidden=self._credentials.hidden,
            ) from None
        finally:
            # an answer that wasn't read to its end leaves a connection that can't be used again
            if response is not None:
                response.close()

    def _requested(self, where: Endpoint, method: str, query: str, accept: str) -> Any:
        self._check_deadline()
        left = max(0.001, self._end - time.monotonic())
        headers = {
            "Accept": accept,
            "Accept-Encoding": "gzip",
            "User-Agent": f"knowledge-capacity/{__version__}",
        }
        if self._may_know(where):
            headers["Authorization"] = self._credentials.header
        body = None
        if method == "POST":
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            body = urlencode({"query": query}).encode("ascii")
        seconds = min(self._timeout, left)
        return self._connections.request(where, method, headers, body, seconds)

    def _may_know(self, where: Endpoint) -> bool:
        """Return True if the credentials may be sent to an address."""
        header = self._credentials.header
        return bool(header) and self.endpoint.is_at(where) and where.keeps_secrets

    def _redirected(self, where: Endpoint, response: Any) -> Endpoint:
        try:
            there = endpoint_at(urljoin(where.url, response.headers.get("Location", "")))
        except InvalidArgumentError:
            raise EndpointError(
                self.name,
                f"it redirects ({response.status}) to what is no address of http or https",
                "Pass the address that answers.",
            ) from None
        if where.parts.scheme == "https" and there.parts.scheme == "http":
            raise EndpointError(
                self.name,
                f"it redirects ({response.status}) from https to http, {there.name}",
                "Pass an address that others can't read, or that one if it may be read.",
            )
        # the query may be secret, and an address within a network mustn't be asked for another's
        if not self.endpoint.is_at(there):
            raise EndpointError(
                self.name,
                f"it redirects ({response.status}) to another host or port, {there.name}, which "
                "isn't asked",
                "If you trust it, pass that address.",
            )
        return there

    def _checked(self, where: Endpoint, response: Any) -> Answer:
        """Refuse what is no answer to the query, and what states that it isn't whole."""
        status, headers = response.status, response.headers
        encoding = headers.get("Content-Encoding", "identity").strip().lower()
        gzipped = encoding in ("gzip", "x-gzip")

        def raw(n: int) -> bytes:
            self._check_deadline()
            return response.read1(n, decode_content=False) or b""

        def body(look: Callable[[bytes], object]) -> Body:
            return Body(self.name, raw, gzipped=gzipped, max_bytes=self._max_bytes, look=look)

        require_answer(
            self.name,
            status,
            headers,
            "" if status == 200 else self._said(body),
            known=self._may_know(where),
            credentials=self._credentials,
        )
        if not gzipped and encoding not in ("identity", ""):
            raise EndpointError(
                self.name,
                f"its answer is packed by {shown(encoding)}, and gzip alone was asked for",
                "Report it to the endpoint's operator.",
            )
        framed = "Content-Length" in headers or response.chunked
        media_type = headers.get("Content-Type", "").partition(";")[0].strip().lower()
        return Answer(media_type, headers, framed, body)

    def _said(self, body: Callable[[Callable[[bytes], object]], Body]) -> str:
        """Read the endpoint's own words on an error, as far as they can be read."""
        try:
            return body(lambda _data: None).text()
        except (CapacityError, self._connections.exceptions.HTTPError):
            return ""

    def _check_deadline(self) -> None:
        if time.monotonic() >= self._end:
            raise EndpointError(
                self.name,
                f"it hasn't answered whole within {self._seconds:g} seconds",
                "Ask for fewer facts, or raise `deadline`.",
            )
