"""Optional packages, and names that load on first use.

An optional package is imported where it is used, and a missing one is an error that names the extra
to install. The names of a package load when they are asked for, as its stub lists them. This
extends lazy_loader: the error for a misspelt name shows the nearest one, that for a missing
package its extra, and `help` shows a page without loading every name.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import lazy_loader

from capacity.errors import MissingExtraError

# by the name under which a package is imported, the smallest extra that installs it
EXTRAS = {
    "torch": "layers",
    "safetensors": "layers",
    "jaxtyping": "layers",
    "pandas": "plots",
    "filelock": "layers",
    "threadpoolctl": "layers",
    "seaborn": "plots",
    "matplotlib": "plots",
    "networkx": "networkx",
    "rdflib": "rdflib",
    "openpyxl": "excel",
    "tensorly": "cp",
    "pyttb": "pyttb",
    "pykeen": "pykeen",
    "hypothesis": "testing",
    "dask": "distributed",
    "distributed": "distributed",
    "duckdb": "duckdb",
    "transformers": "transformers",
    "gguf": "gguf",
    "accelerate": "gguf",
    "triton": "gpu",
    "urllib3": "sparql",
    "jinja2": "report",
}


# packages that training, scoring and storing layers import
PACKAGES_OF_LAYERS = ("torch", "safetensors", "jaxtyping", "pandas", "filelock", "threadpoolctl")


def missing_extra(what: str, packages: str, extra: str) -> MissingExtraError:
    """Make the error for an operation that needs packages that aren't installed."""
    return MissingExtraError(
        f"{what} needs {packages}; install the extra `{extra}`: pip install "
        f"'knowledge-capacity[{extra}]', or in a clone pip install '.[{extra}]'."
    )


@contextmanager
def needed_by(what: str) -> Iterator[None]:
    """Turn a missing optional package into the error that names its extra.

    Raises
    ------
    MissingExtraError
        In place of the ModuleNotFoundError of a package of an extra.

    Examples
    --------
    >>> with needed_by("to_networkx"):
    ...     import networkx
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        raise missing_extra(what, package, EXTRAS[package]) from error


def require_packages(what: str, packages: tuple[str, ...], extra: str) -> None:
    """Refuse an operation that needs packages that aren't installed, before it begins.

    Raises
    ------
    MissingExtraError
        With all missing packages and the extra that installs them.
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise missing_extra(what, ", ".join(missing), extra)


def lazy_names(
    package: str,
    file: str,
    *,
    need_torch: tuple[str, ...] = (),
    elsewhere_as: Mapping[str, str] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make ``__getattr__``, ``__dir__`` and ``__all__`` of a package from the stub beside it.

    A name of another package, ``from capacity.exact.ranks import matrix_rank``, is in both.

    Parameters
    ----------
    package, file : str
        ``__name__`` and ``__file__`` of the package.
    need_torch : tuple of str
        Names that a star import, which loads every name, omits where torch isn't installed.
    elsewhere_as : mapping of str to str, optional
        Message for names that aren't there, such as those of commands.
    """
    said = elsewhere_as or {}
    rooms, inside, elsewhere = _stub(Path(file).with_suffix(".pyi"))
    load, every, names = lazy_loader.attach(package, rooms, inside)
    names = sorted([*names, *elsewhere])

    _STUBS.append((package, inside, elsewhere))

    # functions as users get them, which aren't among the names of the package itself: doctest would
    # take them for its own
    answering: dict[str, Any] = {}

    def value_of(name: str) -> Any:
        if name in answering:
            return answering[name]
        if name in names:
            with needed_by(f"{package}.{name}"):
                if name in elsewhere:
                    value = getattr(import_module(elsewhere[name]), name)
                else:
                    value = load(name)
            # what passes it imports numpy itself, which `import capacity` does without
            from capacity.door.calls import through_door

            _open_doors(through_door)
            given = through_door(value, package)
            if given is not value:
                # lazy_loader has put the function as it was there
                vars(sys.modules[package]).pop(name, None)
                answering[name] = given
            return given
        hint = f" Use {said[name]}." if name in said else ""
        if not hint and not name.startswith("_"):
            hint = _hint(name, names, Path(file).parent)
        raise AttributeError(f"{package} has no attribute {name!r}.{hint}")

    def all_names() -> list[str]:
        # pydoc loads every name that is listed, so that a page of help would import torch
        if package == "capacity" and sys._getframe(1).f_globals.get("__name__") == "inspect":
            given = vars(sys.modules[package])
            return [name for name in given if isinstance(given[name], ModuleType)]
        return sorted([*every(), *elsewhere])

    missing = need_torch if need_torch and find_spec("torch") is None else ()
    return value_of, all_names, [name for name in names if name not in missing]


# the packages whose names load on first use: names by the module of the package, and of others
_STUBS: list[tuple[str, dict[str, list[str]], dict[str, str]]] = []
# modules that were loaded when the doors of their classes were opened
_n_loaded = 0


def _open_doors(through_door: Callable[[Any, str], Any]) -> None:
    """Let the public classes that are loaded answer wrong calls, since results are of them."""
    global _n_loaded
    if len(sys.modules) == _n_loaded:
        return
    for package, inside, elsewhere in _STUBS:
        of_modules = [(f"{package}.{module}", name) for module in inside for name in inside[module]]
        for module, name in (*of_modules, *((there, one) for one, there in elsewhere.items())):
            value = vars(sys.modules[module]).get(name) if module in sys.modules else None
            if isinstance(value, type):
                through_door(value, package)
    _n_loaded = len(sys.modules)


class _CallablePackage(ModuleType):
    """A package that is called as the function of the command of its name."""

    _called = ""

    def __call__(self, *values: Any, **options: Any) -> Any:
        module, _, name = self._called.partition(":")
        with needed_by(f"{self.__name__}()"):
            function = getattr(import_module(module), name)
        from capacity.door.calls import through_door

        return through_door(function, self.__name__)(*values, **options)


def make_callable(package: str, function: str) -> None:
    """Let a package be called, as people call ``capacity.rank(file)`` who know the command.

    Parameters
    ----------
    package : str
        ``__name__`` of the package.
    function : str
        What is called in its place, ``"package.module:function"``, which is imported then.

    Examples
    --------
    >>> import capacity
    >>> print(capacity.rank([("Oslo", "in", "Norway")]))
    [1, 1]
    """
    module = sys.modules[package]
    module.__class__ = type("CallablePackage", (_CallablePackage,), {"_called": function})


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
    from capacity.checks import nearest

    for stub in sorted(folder.glob("*/__init__.pyi")):
        if re.search(rf" as {name}$", stub.read_text(encoding="utf-8"), re.MULTILINE):
            return f" It is in capacity.{stub.parent.name}."
    return nearest(name, names)
