"""How the engines' functions are compiled, and kept for the next process."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

LOG2_E = math.log2(math.e)


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function when it is first called with arguments of some types."""
    # not 'reassoc', as `simd` says
    flags = {"contract", "nsz", "arcp"}
    return numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=flags)(function)


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
