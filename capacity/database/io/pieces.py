"""Pieces of a text that hold whole lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from capacity.database.io.content import Content

# bytes of lines that are looked at together: they and their numbers stay in the cache
PIECE = 2**20
# bytes from which compiled code and columns pay
LARGE = 2**22


def is_large(content: Content) -> bool:
    """Return True if compiled code should read a text."""
    return len(content.data) >= LARGE


def pieces_of(data: bytes, tell: Callable[[int, int], object]) -> Iterator[memoryview]:
    r"""Yield pieces of whole lines, and tell how many bytes of all were read.

    Examples
    --------
    >>> [bytes(piece) for piece in pieces_of(b"one\ntwo", lambda done, total: None)]
    [b'one\n', b'two']
    """
    view, at = memoryview(data), 0
    while at < len(data):
        end = data.rfind(b"\n", at, at + PIECE) + 1 or data.find(b"\n", at) + 1 or len(data)
        yield view[at:end]
        at = end
        tell(at, len(data))
