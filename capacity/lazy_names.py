"""Names of a package that load on first use, as its stub lists them.

This extends lazy_loader: the error for a misspelt name shows the nearest one, that for a missing
optional package the extra that installs it, and `help` shows a page without loading every name.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import lazy_loader


def lazy_names(
    package: str, file: str, *, need_torch: tuple[str, ...] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make ``__getattr__``, ``__dir__`` and ``__all__`` of a package from the stub beside it.

    A name of another package, ``from capacity.exact.ranks import matrix_rank``, is in both.

    Parameters
    ----------
    package, file : str
        ``__name__`` and ``__file__`` of the package.
    need_torch : tuple of str
        Names that a star import, which loads every name, omits where torch isn't installed.
    """
    rooms, inside, elsewhere = _stub(Path(file).with_suffix(".pyi"))
    load, every, names = lazy_loader.attach(package, rooms, inside)
    names = sorted([*names, *elsewhere])

    def value_of(name: str) -> Any:
        if name in names:
            from capacity.extras import needed_by

            with needed_by(f"{package}.{name}"):
                if name in elsewhere:
                    return getattr(import_module(elsewhere[name]), name)
                return load(name)
        hint = "" if name.startswith("_") else _hint(name, names, Path(file).parent)
        raise AttributeError(f"{package} has no attribute {name!r}.{hint}")

    def all_names() -> list[str]:
        # pydoc loads every name that is listed, so that a page of help would import torch
        if package == "capacity" and sys._getframe(1).f_globals.get("__name__") == "inspect":
            given = vars(sys.modules[package])
            return [name for name in given if isinstance(given[name], ModuleType)]
        return sorted([*every(), *elsewhere])

    missing = need_torch if need_torch and find_spec("torch") is None else ()
    return value_of, all_names, [name for name in names if name not in missing]


def _stub(stub: Path) -> tuple[list[str], dict[str, list[str]], dict[str, str]]:
    """Rooms that a stub lists, names by the module of its package, and modules of other names."""
    rooms: list[str] = []
    inside: dict[str, list[str]] = {}
    elsewhere: dict[str, str] = {}
    for line in ast.parse(stub.read_text(encoding="utf-8")).body:
        if not isinstance(line, ast.ImportFrom):
            continue
        names = [alias.name for alias in line.names]
        if line.module is None:
            rooms += names
        elif line.level:
            inside.setdefault(line.module, []).extend(names)
        else:
            elsewhere |= dict.fromkeys(names, line.module)
    return rooms, inside, elsewhere


def _hint(name: str, names: list[str], folder: Path) -> str:
    """Name the room that has a name, or the nearest name."""
    from capacity.options import nearest

    for stub in sorted(folder.glob("*/__init__.pyi")):
        if re.search(rf" as {name}$", stub.read_text(encoding="utf-8"), re.MULTILINE):
            return f" It is in capacity.{stub.parent.name}."
    return nearest(name, names)
