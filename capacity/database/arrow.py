"""Functions of Arrow on columns."""

from __future__ import annotations

from typing import Any


def compute() -> Any:
    """Return ``pyarrow.compute``, whose functions no checker of types knows.

    They are made when it is imported, which takes longer than most small files do.
    """
    import pyarrow.compute

    return pyarrow.compute
