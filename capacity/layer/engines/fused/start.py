"""Start-up time of the fused engine: kernels are loaded, or compiled if none are kept on disk.

They are compiled for each d_model and dtype: one kernel for full batches, which every run ends
with, and one for runs in batches. Measured in CPU seconds on a core of 2025. No torch in here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from capacity.layer.engines.fused import epochs
from capacity.layer.engines.simd.compile import kept_types
from capacity.layer.engines.workload import Workload

# seconds to import numba, and to load a kernel
IMPORT, LOAD = 0.5, 0.02
# seconds to compile a kernel of each kind: constant, and for each dimension of the model
COMPILE = {"full": (4.0, 0.15), "batches": (1.9, 0.09)}
# factor on these in float64
DOUBLE = 1.2


# key of COMPILE, d_model, dtype
Kernel: TypeAlias = tuple[str, int, str]


def start_seconds(works: Iterable[Workload]) -> float:
    """Estimate the seconds that pass before the first of some trainings (`Engine.start`)."""
    needed: set[Kernel] = set()
    for work in works:
        needed |= needed_kernels(work.layer.d_model, work.dtype, batches=work.n_steps > 1)
    kept = kept_kernels()
    return IMPORT + sum(LOAD if each in kept else _seconds(*each) for each in sorted(needed))


def needed_kernels(d_model: int, dtype: str, *, batches: bool) -> set[Kernel]:
    """Kernels that a training uses: "full" always, since each ends with a look at all facts."""
    return {(name, d_model, dtype) for name in ("full", "batches")[: 1 + batches]}


def kept_kernels() -> set[Kernel]:
    """Kernels whose compiled code is kept on disk for this processor."""
    kernels = {"full": epochs.train_epochs, "batches": epochs.train_batches}
    return {
        (name, *_kind(types)) for name, kernel in kernels.items() for types in kept_types(kernel)
    }


def _kind(types: tuple[Any, ...]) -> tuple[int, str]:
    """Dimension of the model and dtype that a kernel was compiled for.

    Its first argument is a tuple with a number for each dimension. Beside arrays of the layer's
    dtype there are some of float64, and none of float32 unless that is the layer's.
    """
    return len(types[0]), "float32" if "float32" in str(types) else "float64"


def _seconds(name: str, d_model: int, dtype: str) -> float:
    alike, a_dimension = COMPILE[name]
    return (alike + a_dimension * d_model) * (DOUBLE if dtype == "float64" else 1.0)
