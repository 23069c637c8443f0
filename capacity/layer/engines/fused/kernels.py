"""The compiled kernels of the fused engine: what each costs, and which of them trains a layer.

One kernel is for full batches, which every run ends with, and one for runs in batches, each for
float32 and float64. They are compiled for the number of dimensions that their products are unrolled
for. The one for `ROW` dimensions, the widest, trains any layer to the same bits, for the zeros that
pad a layer change no sum; it takes up to twice as long as the layer's own. As with skis, which can
be rented or bought, a process trains by the widest until what it has lost by that would have
compiled the layer's own kernel, and compiles it then: a short sweep compiles one kernel, whatever
the sizes of its layers, and a long one loses little. A kernel that is kept on disk is taken at
once. Processes compile side by side: of those that need the same kernel, one compiles it, and the
others continue with the widest.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numba
import numpy as np

from capacity.layer.engines.engine import Workload
from capacity.layer.engines.fused import epochs
from capacity.layer.engines.registry import engine_named
from capacity.layer.engines.simd import ROW
from capacity.layer.engines.simd.compile import claimed, kept_types

_LOG = logging.getLogger("capacity")
# CPU seconds on a core of 2025 to import numba, to load a kernel, and to compile one of each kind
IMPORT, LOAD = 0.5, 0.02
COMPILE = {"full": 1.8, "batches": 2.4}


class Kernel(NamedTuple):
    """A kernel: "full" or "batches", the dimensions that it is unrolled for, and the dtype."""

    kind: str
    dims: int
    dtype: str

    @property
    def function(self) -> Any:
        """Function of numba that is compiled."""
        return {"full": epochs.train_epochs, "batches": epochs.train_batches}[self.kind]

    @property
    def zeros(self) -> tuple[Any, ...]:
        """First argument of the function, whose type contains the dimensions and the dtype."""
        return (np.dtype(self.dtype).type(0),) * self.dims

    @property
    def types(self) -> tuple[Any, ...]:
        """Numba's types of all arguments."""
        words, number = numba.types.Array(numba.int64, 1, "C"), numba.int64
        others = {"full": (words, number, number), "batches": (words, words, number)}
        return numba.typeof(self.zeros), *others[self.kind]

    @property
    def is_loaded(self) -> bool:
        """Return True if this process has the compiled code."""
        return self.types in self.function.overloads

    @property
    def is_kept(self) -> bool:
        """Return True if compiled code for this processor is on disk."""
        return self.types in kept_types(self.function)


# seconds that this process has lost by the widest kernel, by the kernel that would have saved them
_seconds_lost: defaultdict[Kernel, float] = defaultdict(float)


def kernel_for(kind: str, work: Workload) -> Kernel:
    """Choose the kernel that trains a layer, and load or compile it.

    Parameters
    ----------
    kind : {'full', 'batches'}
        Kind of the kernel.
    work : Workload
        The training.

    Returns
    -------
    Kernel
        That of the layer's d_model, or the widest.
    """
    own = Kernel(kind, work.layer.d_model, work.dtype)
    if own.is_loaded:
        return own
    if own.is_kept:
        # nothing is compiled, so nothing is claimed, and no process waits for another's load
        _load(own)
        return own
    widest = own._replace(dims=ROW)
    if (own == widest or _pays(own, work)) and load_claimed(own, wait=own == widest):
        return own
    return widest if widest.is_loaded else kernel_for(kind, _widest(work))


def load_claimed(kernel: Kernel, *, wait: bool) -> bool:
    """Load or compile a kernel; return False if another process compiles it now.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    wait : bool
        Whether to wait for the other process, and load what it has kept.
    """
    with claimed(kernel.function, "-".join(map(str, kernel)), wait=wait) as is_mine:
        if is_mine:
            _load(kernel)
        return is_mine


def compile_widest(kind: str, dtype: str) -> None:
    """Compile the widest kernel of a kind and a dtype, unless another process does."""
    load_claimed(Kernel(kind, ROW, dtype), wait=False)


def start_seconds(works: Iterable[Workload]) -> float:
    """Estimate the seconds that pass before the first of some trainings (`Engine.start`)."""
    needed: set[Kernel] = set()
    lost: defaultdict[Kernel, float] = defaultdict(float)
    for work in works:
        kinds = ("full", "batches") if work.n_steps > 1 else ("full",)
        for kind in kinds:
            own = Kernel(kind, work.layer.d_model, work.dtype)
            lost[own] += _lost(work) if kind == kinds[-1] else 0
    for own, seconds in lost.items():
        is_own = own.is_kept or seconds >= COMPILE[own.kind]
        needed.add(own if is_own else own._replace(dims=ROW))
    return IMPORT + sum(LOAD if each.is_kept else COMPILE[each.kind] for each in needed)


def _pays(own: Kernel, work: Workload) -> bool:
    """Return True if the time lost by the widest kernel, with this training, compiles its own."""
    _seconds_lost[own] += _lost(work)
    return _seconds_lost[own] >= COMPILE[own.kind]


def _lost(work: Workload) -> float:
    """Estimate how many seconds longer the widest kernel takes for a training than its own."""
    cost = engine_named("fused").cost
    return cost(_widest(work)) - cost(work)


def _widest(work: Workload) -> Workload:
    return replace(work, layer=replace(work.layer, d_model=ROW))


def _load(kernel: Kernel) -> None:
    """Load a kernel, or compile it and keep it on disk."""
    with _announced(kernel):
        kernel.function.compile(kernel.types)


@contextmanager
def _announced(kernel: Kernel, after: float = 1.0) -> Iterator[None]:
    """Log a warning if a kernel is still being compiled after some seconds."""
    of = "any d_model" if kernel.dims == ROW else f"d_model = {kernel.dims}"
    batches = ", in batches" * (kernel.kind == "batches")
    message = "compiling the fused engine for %s in %s%s; this is done once"
    timer = threading.Timer(after, _LOG.warning, (message, of, kernel.dtype, batches))
    timer.daemon = True
    if not kernel.is_kept:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
