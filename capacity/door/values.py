"""Values that few functions take: NaN, infinities, nothing at all, and numbers beyond int64."""

from __future__ import annotations

import math
from collections.abc import Sized
from typing import Any

import numpy as np

_LARGEST = 2**63
# elements of a container that are looked at, and containers within each other
_MOST, _DEEPEST = 1000, 4


def oddity(value: object, *, depth: int = 0) -> str:
    """Describe what is odd about a value; nothing if nothing is.

    Examples
    --------
    >>> oddity([1.0, float("nan")]), oddity(()), oddity(2**70), oddity([1, 2])
    ('holds NaN', 'is empty', 'is beyond int64', '')
    """
    if isinstance(value, str):
        return "holds a NUL" if "\0" in value else "" if value else "is empty"
    if isinstance(value, bool | bytes):
        return "is empty" if value == b"" else ""
    if isinstance(value, int):
        return "is beyond int64" if abs(value) >= _LARGEST else ""
    if isinstance(value, float | np.floating):
        return "is NaN" if math.isnan(value) else "is infinite" if math.isinf(value) else ""
    array = _as_array(value)
    if array is not None:
        return _of_array(array)
    if isinstance(value, dict):
        value = list(value.values()) or ()
    if isinstance(value, list | tuple | set | frozenset):
        if not value:
            return "is empty"
        return _of_elements(list(value)[:_MOST], depth)
    if isinstance(value, Sized):
        try:
            return "" if len(value) else "is empty"
        # a class may refuse its length
        except Exception:
            return ""
    return ""


def form_of_array(value: object) -> str:
    """Dtype and shape of an array, a tensor or a frame; nothing for what is none.

    Examples
    --------
    >>> form_of_array(np.zeros((2, 3))), form_of_array([1, 2])
    ('float64 (2, 3)', '')
    """
    array = _as_array(value)
    return "" if array is None else f"{array.dtype} {array.shape}"


def _of_elements(elements: list[Any], depth: int) -> str:
    if depth == _DEEPEST:
        return ""
    odd = next(filter(None, (oddity(one, depth=depth + 1) for one in elements)), "")
    return {
        "is NaN": "holds NaN",
        "is infinite": "holds infinities",
        "is empty": "holds an empty part",
        "is beyond int64": "holds numbers beyond int64",
    }.get(odd, odd)


def _as_array(value: Any) -> np.ndarray[Any, Any] | None:
    """An array of numpy, for what is one or becomes one without a copy of its numbers."""
    if isinstance(value, np.ndarray):
        return value
    if type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach"):
        try:
            return value.detach().cpu().numpy()
        # of a type or a layout that numpy doesn't have
        except (TypeError, RuntimeError):
            return None
    if type(value).__name__ in ("DataFrame", "Series"):
        return np.asarray(value.to_numpy())
    return None


def _of_array(array: np.ndarray[Any, Any]) -> str:
    if not array.size:
        return "is empty"
    if array.dtype.kind in "fc":
        if np.isnan(array).any():
            return "holds NaN"
        return "" if np.isfinite(array).all() else "holds infinities"
    return ""
