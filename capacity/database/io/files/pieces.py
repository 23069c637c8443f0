"""Pieces of a text that hold whole lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from capacity.kept_code import pays

# bytes of lines that are looked at together: they and their numbers stay in the cache
PIECE = 2**20
# bytes of a text from which it is read as columns
LARGE = 2**23
# bytes from which compiled code pays if it is kept, and if it isn't: numba is imported in a second,
# which Python takes longer for 20 MB of N-Triples, and compiles in eleven, for 200 MB
KEPT, UNKEPT = 2**24, 3 * 2**26


class UnsuitedError(Exception):
    """A text that can't be read as columns, and is to be read in another way."""


def compiled_pays(size: int, source: Path, function: str) -> bool:
    """Return True if compiled code should read a large text of some bytes (`kept_code.pays`)."""
    return pays(size, source, function, kept=KEPT, unkept=UNKEPT)


def pieces_of(
    data: bytes, tell: Callable[[int, int], object], start: int = 0
) -> Iterator[memoryview]:
    r"""Yield pieces of whole lines from a byte on, and report how many bytes of all were read.

    Examples
    --------
    >>> [bytes(piece) for piece in pieces_of(b"one\ntwo", lambda done, total: None)]
    [b'one\n', b'two']
    """
    view, at = memoryview(data), start
    while at < len(data):
        end = data.rfind(b"\n", at, at + PIECE) + 1 or data.find(b"\n", at) + 1 or len(data)
        yield view[at:end]
        at = end
        tell(at, len(data))
