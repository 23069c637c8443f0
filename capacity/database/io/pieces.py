"""Pieces of a text that hold whole lines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from capacity.database.io.content import Content
from capacity.kept_code import is_kept

# bytes of lines that are looked at together: they and their numbers stay in the cache
PIECE = 2**20
# bytes from which compiled code and columns pay, and how many times as many if that is still to be
# compiled: of N-Triples Python reads some 13 MB in the second and a half that numba takes to be
# imported and loaded, and 100 MB in the ten that it takes to compile
LARGE, UNKEPT = 2**23, 8
# bytes of the large texts that came to a reader before its code was kept
_seen: defaultdict[tuple[Path, str], int] = defaultdict(int)


def is_large(content: Content, source: Path, function: str) -> bool:
    """Return True if compiled code should read a text.

    As with skis, which can be rented or bought, a process reads in Python until its large texts
    would have paid for the compilation together, and compiles then.

    Parameters
    ----------
    content : Content
        The text.
    source, function : Path, str
        Source and name of the function that would be compiled.
    """
    size = len(content.data)
    if size < LARGE or is_kept(source, function):
        return size >= LARGE
    _seen[source, function] += size
    return _seen[source, function] >= UNKEPT * LARGE


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
