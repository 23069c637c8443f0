"""A process that compiles what the workers of a sweep need, while they start."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from capacity.layer.engines.registry import engine_named
from capacity.sweep.plan import Run


@contextmanager
def compiled_ahead(run: Run) -> Iterator[None]:
    """Compile what a run needs in a process, which ends with the context.

    Workers wait for the code if it isn't there yet (`capacity.layer.engines.fused.kernels`), and
    compile it themselves if this process fails.

    Parameters
    ----------
    run : Run
        One of the runs, such as the first.
    """
    arguments = engine_named(run.engine).ahead(run.workload)
    if arguments is None:
        yield
        return
    silent = subprocess.DEVNULL
    with subprocess.Popen(
        [sys.executable, *arguments], stdin=silent, stdout=silent, stderr=silent
    ) as process:
        try:
            yield
        finally:
            process.kill()
