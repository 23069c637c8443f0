"""The names of a package, from its stub: each loads on first use.

Beside what lazy_loader does, a misspelt name gets the nearest, a missing optional package the extra
that has it, and `help` shows a page without loading everything for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import lazy_loader


def lazy_names(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make ``__getattr__``, ``__dir__`` and ``__all__`` of a package by the stub beside it.

    Parameters
    ----------
    package, file : str
        Its ``__name__`` and ``__file__``.
    """
    load, every, names = lazy_loader.attach_stub(package, file)

    def value_of(name: str) -> Any:
        if name in names:
            from capacity.extras import needed_by

            with needed_by(f"{package}.{name}"):
                return load(name)
        hint = ""
        if not name.startswith("_"):
            from capacity.options import nearest

            hint = nearest(name, names)
        raise AttributeError(f"{package} has no attribute {name!r}.{hint}")

    def all_names() -> list[str]:
        # pydoc takes the value of all that is listed: a page of help would load torch
        if sys._getframe(1).f_globals.get("__name__") == "inspect":
            return [name for name in every() if name in vars(sys.modules[package])]
        return every()

    return value_of, all_names, names
