"""Imports of the tasks of a sweep, for a process that worker processes are forked from.

It is imported by name there, once, and each worker has it from its first moment. Torch isn't among
it: some engines do without, and its threads don't survive a fork.
"""

import gc
import signal
from contextlib import suppress
from importlib import import_module

# an interrupt is the parent's to answer; the server would print it
_answer = signal.signal(signal.SIGINT, signal.SIG_IGN)
# searches for garbage among what stays take a sixth of the time of imports
gc.disable()
for _name in ("capacity.sweep.training.one_run", "capacity.rank.analysis", "numba"):
    # a worker that needs it meets the error again, and tells it
    with suppress(Exception):
        import_module(_name)
gc.freeze()
gc.enable()
signal.signal(signal.SIGINT, _answer)
