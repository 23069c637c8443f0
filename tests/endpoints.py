"""Endpoints on this machine: a real Oxigraph server, and servers that do harm.

The real one is the program of the package ``oxigraph``, over a store in a temporary folder; tests
of it are skipped where it isn't installed. The others answer what a test tells them to.
"""

from __future__ import annotations

import http.server
import json
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

OXIGRAPH = shutil.which("oxigraph", path=str(Path(sys.executable).parent)) or shutil.which(
    "oxigraph"
)
needs_oxigraph = pytest.mark.skipif(
    OXIGRAPH is None, reason="the program of the package oxigraph isn't installed"
)
JSON = "application/sparql-results+json"


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@dataclass
class Oxigraph:
    """A running server, and what it holds."""

    url: str
    process: subprocess.Popen[bytes]

    @property
    def sparql(self) -> str:
        return f"{self.url}/query"

    def hold(self, nquads: str) -> None:
        """Replace all that the store holds, named graphs too."""
        request = urllib.request.Request(
            f"{self.url}/store",
            data=nquads.encode(),
            method="PUT",
            headers={"Content-Type": "application/n-quads"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.status in (201, 204)


@contextmanager
def oxigraph(folder: Path, *options: str) -> Iterator[Oxigraph]:
    """A server over a store in a folder, that can be written to."""
    assert OXIGRAPH is not None
    port = _free_port()
    process = subprocess.Popen(
        [OXIGRAPH, "serve", "-l", str(folder), "-b", f"127.0.0.1:{port}", *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(600):
            with socket.socket() as asked:
                if asked.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, "the server ended"
            time.sleep(0.05)
        yield Oxigraph(f"http://127.0.0.1:{port}", process)
    finally:
        process.kill()
        process.wait()


@dataclass
class Asked:
    """A request that a harmful server got."""

    method: str
    path: str
    headers: Any
    body: bytes

    @property
    def query(self) -> str:
        """The query, as the server reads it."""
        return urllib.parse.parse_qs(self.body.decode())["query"][0]


# answers a request by writing to its handler
Answering = Callable[["_Handler", Asked], None]


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # headers and body are sent one after the other, and needn't wait for each other
    disable_nagle_algorithm = True
    server: _Server  # type: ignore[assignment]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        asked = Asked(self.command, self.path, self.headers, body)
        self.server.asked.append(asked)
        self.server.answer(self, asked)

    do_GET = do_POST

    def log_message(self, format: str, *args: object) -> None:
        pass

    def send(
        self,
        body: bytes | str = b"",
        *,
        status: int = 200,
        type: str = JSON,
        headers: Iterable[tuple[str, str]] = (),
        length: int | None = None,
    ) -> None:
        """Send a whole answer, or one whose length is a lie."""
        data = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Type", type)
        self.send_header("Content-Length", str(len(data) if length is None else length))
        self.end_headers()
        self.wfile.write(data)

    def end(self) -> None:
        """Break the connection."""
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, answer: Answering) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.asked: list[Asked] = []

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients of harmful servers go away."""


@dataclass
class Harmful:
    """A running server that answers as it is told to."""

    url: str
    asked: list[Asked] = field(repr=False)


@contextmanager
def serving(*answers: Answering) -> Iterator[Harmful]:
    """A server that gives its answers in turn, and the last one from then on."""
    left = list(answers)

    def answer(handler: _Handler, asked: Asked) -> None:
        (left.pop(0) if len(left) > 1 else left[0])(handler, asked)

    server = _Server(answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.daemon = True
    thread.start()
    try:
        yield Harmful(f"http://127.0.0.1:{server.server_port}/sparql", server.asked)
    finally:
        server.shutdown()
        server.server_close()


def result(columns: str, *rows: Iterable[Any]) -> str:
    """A result of SPARQL in JSON: of its cells, a str is an IRI, an int a number, None no value."""

    def term(cell: Any) -> Any:
        if isinstance(cell, int):
            integer = "http://www.w3.org/2001/XMLSchema#integer"
            return {"type": "literal", "value": str(cell), "datatype": integer}
        return cell if isinstance(cell, dict) else {"type": "uri", "value": cell}

    names = columns.split()
    bindings = [
        {n: term(cell) for n, cell in zip(names, row, strict=True) if cell is not None}
        for row in rows
    ]
    return json.dumps({"head": {"vars": names}, "results": {"bindings": bindings}})


def says(body: bytes | str, **options: Any) -> Answering:
    """Answer the same each time."""
    return lambda handler, _asked: handler.send(body, **options)


def capped(n: int, cap: int) -> Answering:
    """An endpoint of n facts that gives at most `cap` rows of them, without a word."""

    def answer(handler: _Handler, asked: Asked) -> None:
        query = asked.query
        if "COUNT" in query:
            handler.send(result("n", (n,)))
            return
        words = query.split()
        start = int(words[words.index("OFFSET") + 1]) if "OFFSET" in words else 0
        end = start + int(words[words.index("LIMIT") + 1]) if "LIMIT" in words else n
        rows = [(f"x:s{i}", "x:p", "x:o") for i in range(start, min(n, end, start + cap))]
        handler.send(result("s p o", *rows))

    return answer
