"""Compilation of the engines' functions, whose code is kept for the next process."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba

from capacity.kept_code import kept
from capacity.layer.engines.simd.llvm import FLAGS
from capacity.safe_files import claim

LOG2_E = math.log2(math.e)


_njit: Any = numba.njit
_OPTIONS = {"nogil": True, "error_model": "numpy", "fastmath": set(FLAGS)}


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function at its first call with arguments of some types, and keep the code."""
    return kept(function, **_OPTIONS)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a function into its callers.

    Numba passes each array of a named tuple as seven words, and so hundreds in a call: calls of the
    functions of an epoch would take a third of its time.
    """
    return _njit(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, **_OPTIONS)(
        function
    )


def linked(function: Callable[..., Any]) -> Any:
    """Compile a function of few arguments into one that is kept, as a function of its own."""
    return _njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **_OPTIONS)(function)


def kept_types(function: Any) -> list[tuple[Any, ...]]:
    """Find the argument types that a function is compiled for, by this or another process.

    Returns
    -------
    list of tuple
        Numba's types, for this processor; empty if numba stores its index in a way that isn't known
        here.
    """
    with contextlib.suppress(AttributeError, OSError, TypeError, ValueError):
        processor = function.targetctx.codegen().magic_tuple()
        index = function._cache._cache_file._load_index()
        return [types for types, made_for, _ in index if made_for == processor]
    return []


@contextlib.contextmanager
def claimed(function: Any, name: str, *, wait: bool) -> Iterator[bool]:
    """Claim to compile some of a function's code, of all processes that keep it in one folder.

    Parameters
    ----------
    function : function of numba
        The function.
    name : str
        Name of the code.
    wait : bool
        Whether to wait for a process that has claimed it.

    Yields
    ------
    bool
        False if another process has claimed it; True where there are no locks.
    """
    with contextlib.ExitStack() as stack:
        is_free: bool | None = None
        # without a folder nothing is kept
        with contextlib.suppress(OSError, TypeError):
            path = Path(function.stats.cache_path, f"{name}.lock")
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            stack.callback(os.close, descriptor)
            is_free = claim(descriptor, wait=wait)
        yield is_free is not False
