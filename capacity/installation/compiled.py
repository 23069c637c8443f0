"""The compiled code that numba keeps on disk for the next process, seen without numba."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from capacity.kept_code import folders_of, is_index_of

# numba's names: module.function-line.py311.nbi for an index, .nbc for the code
_INDEX = re.compile(r"(?P<module>\w+)\..+-\d+\.py(?P<python>\d+)\w*\.nbi")


@dataclass(frozen=True)
class CompiledCode:
    """Compiled functions of this library that are kept on disk.

    Attributes
    ----------
    folders : tuple of str
        Folders that hold some.
    functions : dict of str to int
        By the rooms of the library, numbers of functions that this version of Python finds
        compiled.
    stale : int
        Number of functions that were compiled from an older source, and will be again.
    size : int
        Bytes of all files.
    """

    folders: tuple[str, ...]
    functions: dict[str, int]
    stale: int
    size: int


def compiled_code(package: Path) -> CompiledCode:
    """Find the compiled functions of a package.

    Parameters
    ----------
    package : Path
        Folder of the package.

    Returns
    -------
    CompiledCode
        An empty one if nothing is compiled, or numba isn't installed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     compiled_code(Path(folder)).size
    0
    """
    folders: dict[str, None] = {}
    functions: dict[str, int] = {}
    stale = size = 0
    python = "".join(map(str, sys.version_info[:2]))
    for sources in sorted({path.parent for path in package.rglob("*.py")}):
        room = (*sources.relative_to(package).parts, "the top")[0]
        for kept in folders_of(sources):
            for file in kept.glob("*.nb[ic]"):
                folders[str(kept)] = None
                size += file.stat().st_size
                named = _INDEX.fullmatch(file.name)
                if named is None or named["python"] != python:
                    continue
                source = sources / f"{named['module']}.py"
                if is_index_of(source, file):
                    functions[room] = functions.get(room, 0) + 1
                else:
                    stale += 1
    return CompiledCode(tuple(folders), functions, stale, size)
