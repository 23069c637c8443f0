"""Changes of what threads share: made by the first who needs them, undone by the last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import Any

_LOCK = Lock()
# by object and attribute: the object, what the attribute was, and how many need the change
_changes: dict[tuple[int, str], list[Any]] = {}


@contextmanager
def shared_change(objects: Iterable[Any], name: str, value: Any) -> Iterator[None]:
    """Set an attribute in this context, in which all that is set at a time must be the same.

    Parameters
    ----------
    objects : iterable
        Objects that other threads may use.
    name : str
        Attribute; where it is missing, it counts as None, and is None afterwards if it was set.
    value : object
        Its value in the context.

    Examples
    --------
    >>> class Config:
    ...     attention = "sdpa"
    >>> config = Config()
    >>> with shared_change([config], "attention", "eager"):
    ...     with shared_change([config], "attention", "eager"):
    ...         config.attention
    'eager'
    >>> config.attention
    'sdpa'
    """
    mine: list[list[Any]] = []
    try:
        with _LOCK:
            for of in objects:
                change = _changes.setdefault((id(of), name), [of, getattr(of, name, None), 0])
                change[2] += 1
                mine.append(change)
                _set(of, name, value)
        yield
    finally:
        # an error in one doesn't keep the others from being undone, which ends before the lock does
        with _LOCK, ExitStack() as undone:
            for change in mine:
                change[2] -= 1
                of, before, needed = change
                if not needed:
                    del _changes[id(of), name]
                    undone.callback(_set, of, name, before)


def _set(of: Any, name: str, value: Any) -> None:
    # modules take long to set an attribute, and most have it
    if getattr(of, name, None) is not value:
        setattr(of, name, value)
