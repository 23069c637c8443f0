"""The folders where numba keeps compiled code for the next process, read without numba.

Importing numba, and compiling most of all, takes longer than many answers: who knows that nothing
is kept may do with Python.
"""

from __future__ import annotations

import hashlib
import os
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path


@cache
def is_kept(source: Path, function: str) -> bool:
    """Return True if compiled code of a function was on disk when this process first asked.

    Parameters
    ----------
    source : Path
        Source of the function's module.
    function : str
        Its qualified name.
    """
    names = f"{source.stem}.{function}-*.py{sys.version_info[0]}{sys.version_info[1]}*.nbi"
    kept = (index for folder in folders_of(source.parent) for index in folder.glob(names))
    return any(is_index_of(source, index) for index in kept)


def is_index_of(source: Path, index: Path) -> bool:
    """Return True if an index of compiled code, as numba writes it, is of a module as it is now."""
    with suppress(OSError):
        # it has the digest of the module's bytes; before numba 0.62 the time of its last change
        stamps = (
            hashlib.sha256(source.read_bytes()).digest(),
            struct.pack(">d", source.stat().st_mtime),
        )
        held = index.read_bytes()
        return any(stamp in held for stamp in stamps)
    return False


def folders_of(sources: Path) -> Iterator[Path]:
    """Yield the folders where numba keeps the code of a folder of sources."""
    # numba names a folder of its own cache by that of the sources, and by the SHA-1 of its path
    digest = hashlib.sha1(str(sources).encode(), usedforsecurity=False).hexdigest()
    own = f"{sources.name}_{digest}"
    asked = os.environ.get("NUMBA_CACHE_DIR")
    if asked:
        yield Path(asked, own)
        return
    yield sources / "__pycache__"
    yield _users_folder() / own


def _users_folder() -> Path:
    """Return where numba keeps code if it can't write beside the sources."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "numba"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home()), "numba", "Cache")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "numba")
