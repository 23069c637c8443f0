"""A report of the installation, and of other packages named ``capacity``, which may hide it."""

from __future__ import annotations

import contextlib
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from capacity._version import __version__
from capacity.installation.parts import (
    BASE,
    CompiledCode,
    Device,
    Extra,
    Gpu,
    Processor,
    compiled_code,
    extras,
    gpu,
    processor,
    versions,
)
from capacity.visible import visible

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


@dataclass(frozen=True)
class Installation:
    """The installation of this library.

    Attributes
    ----------
    folder : str
        Folder of the library.
    packages : dict of str to str or None
        Version of each package that the library can use; None of what is missing.
    extras : tuple of Extra
        Every extra, with what it lacks.
    processor : Processor
    gpu : Gpu
    device : {'cpu', 'cuda'}
        Where layers are trained on the device that was asked for.
    compiled : CompiledCode
        Compiled functions that are kept on disk.
    temporary : str
        Folder of temporary files, such as those of counting out of core.
    temporary_free : int
        Bytes that are free there.
    clashes : tuple of Clash
        Whatever else is called ``capacity``.
    problems : tuple of str
        What is wrong, and what to do.
    """

    folder: str
    packages: dict[str, str | None]
    extras: tuple[Extra, ...]
    processor: Processor
    gpu: Gpu
    device: str
    compiled: CompiledCode
    temporary: str
    temporary_free: int
    clashes: tuple[Clash, ...]
    problems: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the report for JSON."""
        return {
            "capacity": __version__,
            "python": {
                "version": platform.python_version(),
                "implementation": platform.python_implementation(),
                "executable": sys.executable,
                "platform": platform.platform(),
            },
            **asdict(self),
        }

    def __str__(self) -> str:
        python = f"{platform.python_version()} ({platform.python_implementation()})"
        there = [f"{name} {version}" for name, version in self.packages.items() if version]
        whole = [extra.name for extra in self.extras if not extra.missing]
        rows = [
            ("python", f"{python}, {sys.executable}"),
            ("platform", platform.platform()),
            ("packages", ", ".join(there)),
            ("extras", ", ".join(whole) or "none"),
            *(("not installed", _lacking(extra)) for extra in self.extras if extra.missing),
            ("processor", _of_processor(self.processor)),
            ("GPU", ", ".join(self.gpu.names) or f"none: {self.gpu.reason}"),
            ("device", f"layers are trained on {self.device}"),
            ("compiled", _of_code(self.compiled)),
            *(("", folder) for folder in self.compiled.folders),
            ("temporary", f"{self.temporary}, {_size(self.temporary_free)} free"),
            *(("problem", problem) for problem in self.problems),
        ]
        lines = [f"  {name:<13}  {visible(said)}".rstrip() for name, said in rows]
        if not self.problems:
            lines.append("  no problem was found")
        return "\n".join([f"capacity {__version__}, in {visible(self.folder)}", *lines])


def installation(device: Device = "auto") -> Installation:
    """Look at the installation of this library.

    Parameters
    ----------
    device : {'auto', 'cpu', 'cuda'}
        The device that layers are to be trained on: with ``cpu`` no GPU is looked for, with
        ``cuda`` one that isn't usable is a problem.

    Returns
    -------
    Installation

    Examples
    --------
    >>> found = installation("cpu")
    >>> found.device, found.problems
    ('cpu', ())
    """
    package = Path(__file__).parents[1]
    packages, seen = versions(), gpu(device)
    others = clashes(sys.path, Path(), package)
    temporary = tempfile.gettempdir()
    return Installation(
        str(package),
        packages,
        extras(),
        processor(),
        seen,
        "cuda" if seen.usable else "cpu",
        compiled_code(package),
        temporary,
        shutil.disk_usage(temporary).free,
        others,
        (*_of_base(packages), *_of_gpu(seen, device), *(_of_clash(one) for one in others)),
    )


def _of_base(packages: dict[str, str | None]) -> list[str]:
    missing = [name for name in BASE if packages[name] is None]
    if not missing:
        return []
    return [f"{', '.join(missing)} must be installed: pip install knowledge-capacity."]


def _of_gpu(seen: Gpu, device: Device) -> list[str]:
    """Explain why a GPU that was asked for, or that has a driver, isn't usable."""
    if seen.usable or not (device == "cuda" or seen.driver):
        return []
    remedy = "Install a build of torch for CUDA, from https://pytorch.org/get-started/locally"
    if not seen.driver:
        remedy = "Install NVIDIA's driver, or pass --device cpu"
    return [f"no GPU is usable: {seen.reason}. {remedy}."]


def _of_clash(one: Clash) -> str:
    return f"{one.where} is {one.what}. {one.advice}"


def _lacking(extra: Extra) -> str:
    return f"{extra.name}, which needs {', '.join(extra.missing)}: {extra.install}"


def _of_processor(found: Processor) -> str:
    limits = ", ".join(f"{name} = {value}" for name, value in found.threads.items())
    cores = f"{found.cores} core{'' if found.cores == 1 else 's'}"
    return (
        f"{found.machine}, {cores}, {found.available} of them available; "
        f"{limits or 'no variable limits threads'}"
    )


def _of_code(found: CompiledCode) -> str:
    """Number of functions that are compiled, by room, in words."""
    n = sum(found.functions.values())
    if not n:
        return "nothing yet: the first search or training compiles for some seconds, once"
    rooms = ", ".join(f"{room} {count}" for room, count in found.functions.items())
    stale = f", and {found.stale} of older sources" if found.stale else ""
    return f"{n} functions ({rooms}){stale}, {_size(found.size)}"


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.1f} MB"
