"""Parts of an installation, as far as they can be seen without what takes long to import.

They are the versions of packages, the extras whose packages are missing, the processor, its threads
and the GPU, and the compiled code that numba keeps on disk for the next process.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeAlias

from capacity.checks import in_a_line
from capacity.kept_code import folders_of, is_index_of
from capacity.optional import EXTRAS, PACKAGES_OF_LAYERS

# what every install has; under these names they are installed
BASE = ("numpy", "scipy", "pyoxigraph", "python-flint", "numba", "pyarrow", "typer", "rich",
        "lazy-loader")  # fmt: skip
# of packages that are imported under another name than they are installed under
_IMPORTED = {"python-flint": "flint", "lazy-loader": "lazy_loader"}


@dataclass(frozen=True)
class Extra:
    """An optional part of the library.

    Attributes
    ----------
    name : str
        Name of the extra.
    missing : tuple of str
        Its packages that aren't there.
    install : str
        The command that installs it.
    """

    name: str
    missing: tuple[str, ...]
    install: str


def is_there(package: str) -> bool:
    """Return True if a package can be found, without importing it."""
    try:
        return find_spec(package) is not None
    # a module without a spec, such as one that a test has put there
    except ValueError:
        return False


def extras() -> tuple[Extra, ...]:
    """Return every extra, in the order of names, with what it lacks.

    Examples
    --------
    >>> [extra.name for extra in extras()][:3]
    ['cp', 'distributed', 'duckdb']
    """
    packages: dict[str, list[str]] = {}
    for package, extra in EXTRAS.items():
        packages.setdefault(extra, []).append(package)
    packages["layers"] = [*dict.fromkeys([*packages["layers"], *PACKAGES_OF_LAYERS])]
    return tuple(
        Extra(
            name,
            tuple(package for package in packages[name] if not is_there(package)),
            f"pip install 'knowledge-capacity[{name}]'",
        )
        for name in sorted(packages)
    )


def versions() -> dict[str, str | None]:
    """Return the version of every package that the library can use; None of what is missing.

    Examples
    --------
    >>> versions()["numpy"].count(".")
    2
    """
    found: dict[str, str | None] = {name: _version(name, name) for name in BASE}
    for package in sorted(EXTRAS):
        found[package] = _version(package, package)
    for name, imported in _IMPORTED.items():
        found[name] = _version(name, imported)
    return found


def _version(name: str, imported: str) -> str | None:
    if not is_there(imported):
        return None
    try:
        return version(name)
    except PackageNotFoundError:
        # installed under another name, as a nightly build is
        for other in packages_distributions().get(imported, ()):
            return version(other)
    return "unknown"


Device: TypeAlias = Literal["auto", "cpu", "cuda"]
# variables that the libraries below take their numbers of threads from
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
_DRIVERS = {"linux": "libcuda.so.1", "win32": "nvcuda.dll"}


@dataclass(frozen=True)
class Processor:
    """The processor of this machine, and the threads that may be used.

    Attributes
    ----------
    machine : str
        Kind of processor, such as x86_64.
    cores : int
        Number of cores.
    available : int
        Number of them that this process may run on.
    threads : dict of str to str
        Variables that set a number of threads, where they are set.
    """

    machine: str
    cores: int
    available: int
    threads: dict[str, str]


@dataclass(frozen=True)
class Gpu:
    """A GPU, as far as it is known.

    Attributes
    ----------
    asked : bool
        Whether it was looked for.
    driver : bool
        Whether NVIDIA's driver is there.
    usable : bool
        Whether torch can use it, so that layers train on it.
    names : tuple of str
        Names of the devices that torch sees.
    reason : str or None
        Why it isn't usable.
    """

    asked: bool
    driver: bool
    usable: bool
    names: tuple[str, ...]
    reason: str | None


def processor() -> Processor:
    """Look at the processor.

    Examples
    --------
    >>> found = processor()
    >>> 1 <= found.available <= found.cores
    True
    """
    cores = os.cpu_count() or 1
    affinity = getattr(os, "sched_getaffinity", None)
    available = len(affinity(0)) if affinity else cores
    threads = {name: os.environ[name] for name in THREADS if name in os.environ}
    return Processor(platform.machine(), cores, available, threads)


def gpu(device: Device) -> Gpu:
    """Look for a GPU; torch is imported only if a driver is there, or ``cuda`` is asked for.

    Parameters
    ----------
    device : {'auto', 'cpu', 'cuda'}
        With ``cpu`` nothing is looked for.

    Examples
    --------
    >>> gpu("cpu").reason
    'not looked for'
    """
    if device == "cpu":
        return Gpu(False, False, False, (), "not looked for")
    driver = _has_driver()
    if not is_there("torch"):
        return Gpu(True, driver, False, (), "torch isn't installed")
    if not driver and device == "auto":
        return Gpu(True, False, False, (), "there is no NVIDIA driver")
    try:
        import torch

        usable = torch.cuda.is_available()
        count = torch.cuda.device_count() if usable else 0
        names = tuple(torch.cuda.get_device_name(i) for i in range(count))
    # whatever a broken install raises is what is to be told
    except Exception as error:
        return Gpu(True, driver, False, (), f"torch fails: {in_a_line(error)}")
    if usable:
        return Gpu(True, driver, True, names, None)
    if torch.version.cuda is None:
        return Gpu(True, driver, False, (), "this build of torch is for processors alone")
    return Gpu(True, driver, False, (), "torch sees no GPU" if driver else "no NVIDIA driver")


def _has_driver() -> bool:
    name = _DRIVERS.get(sys.platform)
    if name is None:
        return False
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


# numba's names: module.function-line.py311.nbi for an index, .nbc for the code
_INDEX = re.compile(r"(?P<module>\w+)\..+-\d+\.py(?P<python>\d+)\w*\.nbi")


@dataclass(frozen=True)
class CompiledCode:
    """Compiled functions of this library that are kept on disk.

    Attributes
    ----------
    folders : tuple of str
        Folders that hold some.
    functions : dict of str to int
        By the rooms of the library, numbers of functions that this version of Python finds
        compiled.
    stale : int
        Number of functions that were compiled from an older source, and will be again.
    size : int
        Bytes of all files.
    """

    folders: tuple[str, ...]
    functions: dict[str, int]
    stale: int
    size: int


def compiled_code(package: Path) -> CompiledCode:
    """Find the compiled functions of a package.

    Parameters
    ----------
    package : Path
        Folder of the package.

    Returns
    -------
    CompiledCode
        An empty one if nothing is compiled, or numba isn't installed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     compiled_code(Path(folder)).size
    0
    """
    folders: dict[str, None] = {}
    functions: dict[str, int] = {}
    stale = size = 0
    python = "".join(map(str, sys.version_info[:2]))
    for sources in sorted({path.parent for path in package.rglob("*.py")}):
        room = (*sources.relative_to(package).parts, "the top")[0]
        for kept in folders_of(sources):
            for file in kept.glob("*.nb[ic]"):
                folders[str(kept)] = None
                size += file.stat().st_size
                named = _INDEX.fullmatch(file.name)
                if named is None or named["python"] != python:
                    continue
                source = sources / f"{named['module']}.py"
                if is_index_of(source, file):
                    functions[room] = functions.get(room, 0) + 1
                else:
                    stale += 1
    return CompiledCode(tuple(folders), functions, stale, size)
