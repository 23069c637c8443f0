"""Connections of urllib3 that are kept open between requests, and can be cut."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from capacity.database.io.sparql.endpoints import Endpoint
from capacity.optional import needed_by


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
