"""Tasks for other processes, which import them from here."""

import os
import signal
import time
from pathlib import Path

from capacity.database import Database
from capacity.errors import LostDeviceError
from capacity.layer.model import AttentionLayer
from capacity.sweep import Run
from capacity.sweep.one_run import database_ranks


def square(n: int) -> int:
    return n * n


def fail(n: int) -> int:
    if n == 1:
        raise ArithmeticError("the poison")
    return n


def die(n: int) -> int:
    """Die at 1, always."""
    if n == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return n


def die_once(n: int, folder: str) -> int:
    """Die at the first attempt."""
    mark = Path(folder) / str(n)
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return n


def lose(n: int, folder: str) -> int:
    """Lose the device: at 1 always, otherwise at the first attempt; return the process."""
    mark = Path(folder) / str(n)
    if n == 1 or not mark.exists():
        mark.write_text(str(os.getpid()))
        raise LostDeviceError(f"the device of {n} is lost.")
    assert os.getpid() != int(mark.read_text())
    return n


def mark(folder: str, number: int) -> None:
    (Path(folder) / str(number)).touch()


def fail_before(_number: int) -> None:
    raise ArithmeticError("the poison")


def unsendable() -> object:
    return lambda: None


def slow(n: int) -> int:
    time.sleep(0.05)
    return n


def norms(run: Run, layer: AttentionLayer) -> dict[str, float]:
    return {"norm": float(layer.W_U.detach().norm()), "facts": run.database.n_triples}


def norms_but_one(run: Run, layer: AttentionLayer) -> dict[str, float]:
    if run.layer.n_heads == 2:
        raise ArithmeticError("the poison")
    return norms(run, layer)


def ranks_once_there(path: str, slow: str, db: Database) -> dict[str, int]:
    """Bound a database, but the one of some facts only once a file is there."""
    deadline = time.monotonic() + 60
    while db.facts_sha256 == slow and not Path(path).exists():
        if time.monotonic() > deadline:
            raise TimeoutError("nothing was trained meanwhile")
        time.sleep(0.01)
    return database_ranks(db)
