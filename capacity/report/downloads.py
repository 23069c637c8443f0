"""Files in a page: as data links up to a size, and as the command that makes them beyond it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass

# bytes of all files of a page together; a page should be sent by mail
MOST_BYTES = 200_000


@dataclass(frozen=True)
class Download:
    """A file of a page.

    Attributes
    ----------
    name, words, command : str
        The file's name, what it holds, and the command that makes it.
    n_bytes : int
        Its size.
    address : str or None
        The file as a ``data:`` address; None if it is too large for the page.
    """

    name: str
    words: str
    command: str
    n_bytes: int
    address: str | None


def downloads(
    files: Iterable[tuple[str, str, str, object]], *, most: int = MOST_BYTES
) -> tuple[Download, ...]:
    """Write JSON files as links, in order, as long as they fit.

    Parameters
    ----------
    files : iterable of (str, str, str, object)
        Name, words and command of each, and its data.
    most : int
        Bytes of all links together, before they are encoded.

    Examples
    --------
    >>> small, large = downloads([("a.json", "a", "do a", [1]), ("b.json", "b", "do b", [2])],
    ...                          most=4)
    >>> small.address, large.address
    ('data:application/json;base64,WzFdCg==', None)
    """
    found: list[Download] = []
    left = most
    for name, words, command, data in files:
        raw = json.dumps(data).encode() + b"\n"
        address = None
        if len(raw) <= left:
            left -= len(raw)
            address = f"data:application/json;base64,{base64.b64encode(raw).decode()}"
        found.append(Download(name, words, command, len(raw), address))
    return tuple(found)
