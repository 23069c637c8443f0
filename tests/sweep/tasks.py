"""Tasks for other processes, which import them from here."""

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from capacity.database import Database
from capacity.errors import LostDeviceError
from capacity.layer.model.attention_layer import AttentionLayer
from capacity.sweep import Run
from capacity.sweep.training.one_run import database_ranks, timed_rows


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


def ranks_never(how: str, facts: str, db: Database) -> dict[str, int]:
    """Bound a database, but not the one of some facts: its process dies, or there is an error."""
    if db.facts_sha256 == facts:
        if how == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        raise ArithmeticError("the poison")
    return database_ranks(db)


def ranks_die_once(folder: str, db: Database) -> dict[str, int]:
    """Bound a database; the first attempt at each kills its process."""
    die_once(db.n_triples, folder)
    return database_ranks(db)


def counted_rows(path: str, runs: Sequence[Run], **options: Any) -> Any:
    """Train some runs, and add their keys to a file."""
    rows = timed_rows(runs, **options)
    with Path(path).open("a") as file:
        file.write("".join(f"{run.key}\n" for run in runs))
    return rows
