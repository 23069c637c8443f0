"""Compile kernels where that pays: importing the compiler takes longer than most small answers.

A kernel is a plain function of scalars, one-dimensional arrays and a generator, in the subset of
Python that numba compiles. Python itself computes the same result, from lists, some hundred times
more slowly. As with skis, which can be rented or bought, a process continues in Python until that
has taken about half as long as the import would, or the compilation where nothing compiled is kept
on disk, and compiles from then on: little is lost if it ends soon, and little if it doesn't.
Results don't depend on the choice.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from capacity.kept_code import is_kept, kept

Result = TypeVar("Result")
# in Python, before numba is imported, and before a kernel is compiled
MOST_STEPS, MOST_STEPS_UNKEPT = 2 * 10**6, 10**7


class _Interpreted:
    """Steps that this process has done in Python."""

    steps = 0


# whether code was kept when this process first asked: a quick bound asks a thousand times
_was_kept = cache(is_kept)


def pays_to_compile(steps: int, source: Path, function: str) -> bool:
    """Return True if some steps should be done by compiled code; otherwise count them.

    Parameters
    ----------
    steps : int
        Number of steps, of about a tenth of a microsecond in Python.
    source, function : Path, str
        Source and name of the function that would be compiled.

    Returns
    -------
    bool
        True if with these there would be more than `MOST_STEPS` in Python, or `MOST_STEPS_UNKEPT`
        if no compiled code of the function is kept on disk; and at once if some is, and numba is
        imported already.

    Examples
    --------
    >>> pays_to_compile(10**10, Path("module.py"), "function")
    True
    """
    was_kept = _was_kept(source, function)
    most = MOST_STEPS if was_kept else MOST_STEPS_UNKEPT
    if (was_kept and "numba" in sys.modules) or _Interpreted.steps + steps > most:
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
    if pays_to_compile(steps, _source(kernel.__code__.co_filename), kernel.__qualname__):
        return _compiled(kernel)(*arguments)
    return kernel(*(a.tolist() if isinstance(a, np.ndarray) else a for a in arguments))


_source = cache(Path)


@cache
def _compiled(kernel: Callable[..., Result]) -> Callable[..., Result]:
    return kept(kernel)
