"""One thread for the libraries that would take more: workers share the processor."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from threadpoolctl import ThreadpoolController


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit the pools of the libraries that this process has loaded, torch's too if it is there."""
    torch = sys.modules.get("torch")
    threads = torch and torch.get_num_threads()
    with _pools(len(sys.modules)).limit(limits=1):
        if torch is not None:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            if torch is not None:
                torch.set_num_threads(threads)


@lru_cache(maxsize=1)
def _pools(_n_modules: int) -> ThreadpoolController:
    """Pools of the libraries, looked for again when a module has been loaded."""
    return ThreadpoolController()
