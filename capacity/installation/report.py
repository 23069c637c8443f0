"""A report of the installation, for people and for programs."""

from __future__ import annotations

import platform
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from capacity._version import __version__
from capacity.installation.clashes import Clash, clashes
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
