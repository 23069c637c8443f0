"""Compile kernels where that pays: importing the compiler takes longer than most small answers.

A kernel is a plain function of scalars, one-dimensional arrays and a generator, in the subset of
Python that numba compiles. Python itself computes the same result, from lists, some hundred times
more slowly. As with skis, which can be rented or bought, a process goes on in Python until that has
taken about half as long as the import would, and compiles from then on: little is lost if it ends
soon, and little if it doesn't. Results don't depend on the choice.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import numpy as np

Result = TypeVar("Result")
# in Python, before numba is imported
MOST_STEPS = 2 * 10**6


class _Interpreted:
    """Steps that this process has done in Python."""

    steps = 0


def pays_to_compile(steps: int) -> bool:
    """Return True if some steps should be done by compiled code; otherwise count them.

    Parameters
    ----------
    steps : int
        Number of steps, of about a tenth of a microsecond in Python.

    Returns
    -------
    bool
        True if numba is imported already, or if with these there would be more than
        `MOST_STEPS` in Python.

    Examples
    --------
    >>> pays_to_compile(10**10)
    True
    """
    if "numba" in sys.modules or _Interpreted.steps + steps > MOST_STEPS:
        return True
    _Interpreted.steps += steps
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
    if pays_to_compile(steps):
        return _compiled(kernel)(*arguments)
    return kernel(*(a.tolist() if isinstance(a, np.ndarray) else a for a in arguments))


@cache
def _compiled(kernel: Callable[..., Result]) -> Callable[..., Result]:
    import numba as nb

    return nb.njit(cache=True)(kernel)
