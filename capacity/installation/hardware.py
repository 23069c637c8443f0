"""Processor, threads and GPU, as far as they can be seen without what takes long to import."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from dataclasses import dataclass
from typing import Literal, TypeAlias

from capacity.checks import in_a_line
from capacity.installation.packages import is_there

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
