"""How the engines' functions are compiled, and kept for the next process."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

LOG2_E = math.log2(math.e)


_njit: Any = numba.njit
# not 'reassoc', as `simd` says
_OPTIONS = {"nogil": True, "error_model": "numpy", "fastmath": {"contract", "nsz", "arcp"}}


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function when it is first called with arguments of some types; keep the code."""
    return _njit(cache=True, **_OPTIONS)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a function into those that call it.

    Its arguments are hundreds of words, for numba passes each array of a named tuple as seven: as
    calls, the functions of an epoch would take a third of its time.
    """
    return _njit(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, **_OPTIONS)(
        function
    )


def _forget_stale() -> None:
    """Remove compiled code that is older than any of the sources here.

    Numba looks at the one file that a function is in, not at those of the functions it calls.
    """
    here = Path(__file__).parent
    with contextlib.suppress(OSError):
        newest = max(path.stat().st_mtime for path in here.rglob("*.py"))
        for index in here.rglob("*.nbi"):
            if index.stat().st_mtime < newest:
                index.unlink()


_forget_stale()
