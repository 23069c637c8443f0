"""Changes of what threads share: made by the first who needs them, undone by the last."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

_LOCK = Lock()
# by object and attribute: the object, what the attribute was, and how many need the change
_changes: dict[tuple[int, str], list[Any]] = {}


@contextmanager
def shared_change(of: Any, name: str, value: Any) -> Iterator[None]:
    """Set an attribute in this context, in which all that is set at a time must be the same.

    Parameters
    ----------
    of : object
        Object that other threads may use.
    name : str
        Attribute; it may be missing, and is then None afterwards.
    value : object
        Its value in the context.

    Examples
    --------
    >>> class Config:
    ...     attention = "sdpa"
    >>> config = Config()
    >>> with shared_change(config, "attention", "eager"):
    ...     with shared_change(config, "attention", "eager"):
    ...         config.attention
    'eager'
    >>> config.attention
    'sdpa'
    """
    key = id(of), name
    with _LOCK:
        change = _changes.setdefault(key, [of, getattr(of, name, None), 0])
        change[2] += 1
        setattr(of, name, value)
    try:
        yield
    finally:
        with _LOCK:
            change[2] -= 1
            if not change[2]:
                setattr(of, name, change[1])
                del _changes[key]
