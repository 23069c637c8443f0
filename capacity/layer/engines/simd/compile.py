"""How the engines' functions are compiled, and kept for the next process."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

from capacity.layer.engines.simd.llvm import FLAGS

LOG2_E = math.log2(math.e)


_njit: Any = numba.njit
_OPTIONS = {"nogil": True, "error_model": "numpy", "fastmath": set(FLAGS)}


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function when it is first called with arguments of some types; keep the code."""
    dispatcher = _njit(cache=True, **_OPTIONS)(function)
    # where numba keeps it: beside the sources, the user's own folder, or NUMBA_CACHE_DIR
    _forget_stale(Path(dispatcher.stats.cache_path), f"*.{function.__name__}-*.nbi")
    return dispatcher


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a function into those that call it.

    Its arguments are hundreds of words, for numba passes each array of a named tuple as seven: as
    calls, the functions of an epoch would take a third of its time.
    """
    return _njit(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, **_OPTIONS)(
        function
    )


def _forget_stale(folder: Path, names: str) -> None:
    """Remove compiled code that is older than any of the sources here.

    Numba looks at the one file that a function is in, not at those of the functions it calls.
    """
    with contextlib.suppress(OSError):
        engines = Path(__file__).parent
        # the one beside them sets the width of rows
        sources = [*engines.rglob("*.py"), engines.parent / "engine.py"]
        newest = max(path.stat().st_mtime for path in sources)
        for index in folder.glob(names):
            if index.stat().st_mtime < newest:
                index.unlink()
