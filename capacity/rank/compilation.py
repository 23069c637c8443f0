"""Compile kernels where that pays: importing the compiler takes longer than most small answers.

A kernel is a plain function of scalars, one-dimensional arrays and a generator, in the subset of
Python that numba compiles. Python itself computes the same result, from lists, some hundred times
more slowly. As with skis, which can be rented or bought, a process goes on in Python until that has
taken about half as long as the import would, or the compilation where nothing compiled is kept on
disk, and compiles from then on: little is lost if it ends soon, and little if it doesn't. Results
don't depend on the choice.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

Result = TypeVar("Result")
# in Python, before numba is imported; and before anything is compiled, where it is imported already
MOST_STEPS, MOST_STEPS_UNKEPT = 2 * 10**6, 10**7


class _Interpreted:
    """Steps that this process has done in Python."""

    steps = 0


def pays_to_compile(steps: int, kernel: Callable[[], Any]) -> bool:
    """Return True if some steps should be done by compiled code; otherwise count them.

    Parameters
    ----------
    steps : int
        Number of steps, of about a tenth of a microsecond in Python.
    kernel : callable
        Returns the function of numba that would do them; not called before numba is imported.

    Returns
    -------
    bool
        True if numba is imported and compiled code of the function is kept on disk, or if with
        these there would be more than `MOST_STEPS` in Python, or `MOST_STEPS_UNKEPT` if numba is
        imported.

    Examples
    --------
    >>> pays_to_compile(10**10, lambda: None)
    True
    """
    imported = "numba" in sys.modules
    most = MOST_STEPS_UNKEPT if imported else MOST_STEPS
    if _Interpreted.steps + steps > most or (imported and _is_kept(kernel())):
        return True
    _Interpreted.steps += steps
    return False


@cache
def _is_kept(kernel: Any) -> bool:
    """Return True if compiled code of a function is on disk when this process first asks."""
    source = Path(kernel.py_func.__code__.co_filename)
    names = f"{source.stem}.{kernel.py_func.__qualname__}-*.nbi"
    with suppress(OSError):
        kept = list(Path(kernel.stats.cache_path).glob(names))
        return any(index.stat().st_mtime >= source.stat().st_mtime for index in kept)
    return False


def run_kernel(kernel: Callable[..., Result], steps: int, *arguments: Any) -> Result:
    """Call a kernel, compiled if that pays.

    Parameters
    ----------
    kernel : callable
        The kernel. It returns what it finds, and must not return it in its arguments, which Python
        receives as lists.
    steps : int
        Estimated steps, for `pays_to_compile`.
    *arguments
        Arguments of the kernel.

    Returns
    -------
    object
        Return value of the kernel.
    """
    if pays_to_compile(steps, partial(_compiled, kernel)):
        return _compiled(kernel)(*arguments)
    return kernel(*(a.tolist() if isinstance(a, np.ndarray) else a for a in arguments))


@cache
def _compiled(kernel: Callable[..., Result]) -> Callable[..., Result]:
    import numba as nb

    return nb.njit(cache=True)(kernel)
