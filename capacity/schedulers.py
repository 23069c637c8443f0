"""Connections to the schedulers of Dask clusters."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from capacity.errors import CapacityError
from capacity.optional import require_packages

# seconds until the scheduler answers, and until the first worker must be there
ANSWER, PATIENCE = 10, 60


@contextmanager
def connected(
    address: str,
    what: str,
    packages: tuple[str, ...],
    error: Callable[[str], CapacityError],
    *,
    instead: str,
) -> Iterator[Any]:
    """Connect to a Dask scheduler that has a worker, until the context ends.

    Parameters
    ----------
    address : str
        Address of the scheduler, such as ``tcp://10.0.0.1:8786``.
    what : str
        What needs it, for messages, such as ``--dask``.
    packages : tuple of str
        Packages that are needed, of the extra ``distributed``.
    error : callable
        Makes the error of a message, if no scheduler answers, or it has no workers.
    instead : str
        What else the user can do.

    Yields
    ------
    distributed.Client
        A client that isn't the default of Dask.

    Raises
    ------
    MissingExtraError
        If a package isn't installed.
    """
    require_packages(what, packages, "distributed")
    from distributed import Client

    # a client that found no scheduler is garbage; collected while another one starts, it would wait
    # for a lock that this one holds
    gc.collect()
    try:
        client = Client(address, timeout=ANSWER, set_as_default=False)
    except (OSError, ValueError) as reason:
        raise error(
            f"No Dask scheduler answers at {address} ({reason}). Start one with `dask scheduler`, "
            f"or {instead}."
        ) from None
    try:
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise error(
                f"The scheduler at {address} had no worker within {PATIENCE} s. Start some with "
                f"`dask worker {address}`."
            ) from None
        yield client
    finally:
        # the scheduler drops the tasks of a closed client
        client.close()
