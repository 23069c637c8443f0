"""Compile kernels where that pays: importing the compiler takes longer than most small answers.

A kernel is a plain function of scalars, one-dimensional arrays and a generator, in the subset of
Python that numba compiles. Python itself computes the same result, from lists, some hundred times
more slowly.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import numpy as np

Result = TypeVar("Result")
# steps of a kernel that Python does while numba is imported and a stored kernel is loaded
STEPS_OF_AN_IMPORT = 2 * 10**6


def pays_to_compile(steps: int) -> bool:
    """Return True if compiled code does some steps sooner than Python, its import included.

    Parameters
    ----------
    steps : int
        Number of steps, of about a tenth of a microsecond in Python.

    Returns
    -------
    bool
        True if numba is imported already, or there are more than `STEPS_OF_AN_IMPORT`.

    Examples
    --------
    >>> pays_to_compile(10**10)
    True
    """
    return "numba" in sys.modules or steps > STEPS_OF_AN_IMPORT


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
    if pays_to_compile(steps):
        return _compiled(kernel)(*arguments)
    return kernel(*(a.tolist() if isinstance(a, np.ndarray) else a for a in arguments))


@cache
def _compiled(kernel: Callable[..., Result]) -> Callable[..., Result]:
    import numba as nb

    return nb.njit(cache=True)(kernel)
