"""The process that compiles what the runs of a sweep need, while everything else starts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import IO, cast

from capacity.layer.engines.engine import Workload
from capacity.layer.engines.registry import engine_for
from capacity.layer.model.config import LayerConfig
from capacity.layer.run.recipe import Recipe
from capacity.sweep.plan import Run

# what most sweeps need: full batches of a small layer, in float32
_USUAL = Workload(LayerConfig(1, 1, 1, 1), Recipe(), n_triples=1, n_tokens=3)


@contextmanager
def compiling(*, early: bool) -> Iterator[Callable[[Run], None]]:
    """Compile in a process what a run needs, which ends with the context.

    Workers wait for the code if it isn't there yet (`capacity.layer.engines.fused.kernels`), and
    compile it themselves if this process fails.

    Parameters
    ----------
    early : bool
        True if the process may begin, where the usual code isn't kept, before it is known what is
        needed.

    Yields
    ------
    callable
        Begins to compile what a run needs, unless that is kept.
    """
    with ExitStack() as stack:
        needed = early and engine_for("auto", _USUAL).ahead(_USUAL) is not None
        waiting = stack.enter_context(_process()) if needed else None

        def compile_for(run: Run) -> None:
            arguments = engine_for(run.engine, run.workload).ahead(run.workload)
            if arguments is None:
                stack.close()
                return
            with suppress(OSError), waiting or stack.enter_context(_process()) as line:
                line.write(" ".join(arguments) + "\n")

        yield compile_for


@contextmanager
def _process() -> Iterator[IO[str]]:
    """A process that waits for what to compile, by its standard input; it is killed in the end."""
    command = [sys.executable, "-m", "capacity.layer.engines.ahead"]
    silent = subprocess.DEVNULL
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=silent, stderr=silent, text=True
    )
    line = cast("IO[str]", process.stdin)
    try:
        yield line
    finally:
        process.kill()
        process.wait()
        with suppress(OSError):
            line.close()
