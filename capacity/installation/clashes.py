"""Other packages and modules named ``capacity``, which may be imported in place of this one."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path

OURS = "knowledge-capacity"
NAME = "capacity"
COMMAND = "capacity.cli:main"


@dataclass(frozen=True)
class Clash:
    """Something else that is called ``capacity``.

    Attributes
    ----------
    what : str
        What it is.
    where : str
        Its path, or the name of a distribution.
    advice : str
        What to do about it.
    """

    what: str
    where: str
    advice: str


def clashes(path: Iterable[str], here: Path, package: Path) -> tuple[Clash, ...]:
    """Find what else is called ``capacity``.

    Parameters
    ----------
    path : iterable of str
        Folders that Python imports from, such as ``sys.path``.
    here : Path
        The current folder, which ``python -c`` and notebooks import from first.
    package : Path
        Folder of this library.

    Returns
    -------
    tuple of Clash

    Examples
    --------
    >>> import capacity, sys
    >>> clashes(sys.path, Path(), Path(capacity.__file__).parent)
    ()
    """
    folders = [*dict.fromkeys([str(here), *(folder or str(here) for folder in path)])]
    return (*_distributions(folders), *_modules(folders, package))


def _distributions(folders: list[str]) -> list[Clash]:
    """Find other distributions with a package, a module or a command of this name."""
    found: list[Clash] = []
    for one in distributions(path=folders):
        name = _name(one)
        if re.sub(r"[-_.]+", "-", name).lower() == OURS:
            continue
        files = (one.read_text("RECORD") or "").splitlines()
        tops = (one.read_text("top_level.txt") or "").split()
        commands = [each.value for each in one.entry_points
                    if each.group == "console_scripts" and each.name == NAME]  # fmt: skip
        remedy = f"Uninstall one of the two: pip uninstall {name}, and then install {OURS} again."
        if NAME in tops or any(line.startswith((f"{NAME}/", f"{NAME}.py,")) for line in files):
            found.append(Clash("another distribution with a package `capacity`", name, remedy))
        elif commands and commands != [COMMAND]:
            found.append(Clash("another distribution with a command `capacity`", name, remedy))
    return found


def _name(one: Distribution) -> str:
    # a damaged distribution has no metadata; the backport importlib_metadata, once imported, finds
    # distributions too, and says so by a FileNotFoundError
    with contextlib.suppress(AttributeError, KeyError, TypeError, FileNotFoundError):
        return one.name or "unnamed"
    return "unnamed"


def _modules(folders: list[str], package: Path) -> list[Clash]:
    """Find modules of this name in the folders that come before the one of this library."""
    found: list[Clash] = []
    for i, folder in enumerate(folders):
        # the first is the current folder, which may be this library's
        if i and Path(folder).resolve() == package.resolve().parent:
            break
        module, other = Path(folder, f"{NAME}.py"), Path(folder, NAME)
        if module.is_file():
            what = "a module that Python may import in place of this library"
            found.append(Clash(what, str(module), "Rename it, or work in another folder."))
        if (other / "__init__.py").is_file() and other.resolve() != package.resolve():
            what = "a package that Python may import in place of this library"
            found.append(Clash(what, str(other), "Rename it, or work in another folder."))
    return found
