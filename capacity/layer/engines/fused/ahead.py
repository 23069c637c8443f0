"""A process that compiles a widest kernel and keeps it: python -m ... KIND DTYPE.

It is a module of its own so that such a process imports nothing else.
"""

from __future__ import annotations

import gc
import sys

from capacity.layer.engines.fused.kernels import Kernel, load_claimed
from capacity.layer.engines.simd import ROW


def main(kind: str, dtype: str) -> None:
    """Compile the widest kernel of a kind and a dtype, unless another process does."""
    load_claimed(Kernel(kind, ROW, dtype), wait=False)


if __name__ == "__main__":
    # searches for garbage take a tenth of the time, and this process ends soon
    gc.disable()
    main(*sys.argv[1:])
