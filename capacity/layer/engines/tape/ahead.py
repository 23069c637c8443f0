"""A process that compiles the engine and keeps it: python -m ... DTYPE."""

from __future__ import annotations

import gc
import sys

import numba

from capacity.layer.engines.tape.execute import train


def main(dtype: str) -> None:
    """Compile the engine for a dtype."""
    floats, doubles = (numba.types.Array(t, 1, "C") for t in (getattr(numba, dtype), numba.float64))
    words, tape = (numba.types.Array(numba.int64, n, "C") for n in (1, 2))
    train.compile((floats, words, tape, tape, words, doubles, doubles, words, doubles, doubles,
                   numba.int64, numba.int64))  # fmt: skip


if __name__ == "__main__":
    # searches for garbage take a tenth of the time, and this process ends soon
    gc.disable()
    main(*sys.argv[1:])
