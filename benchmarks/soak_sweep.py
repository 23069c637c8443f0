"""Whether a sweep that is killed at a random moment goes on to the same table, to the last byte.

    make soak-sweep    (100 kills, about half an hour; goes on where it was stopped)

Each trial begins a small sweep, kills its whole process group at a moment drawn evenly from the
time that the sweep takes, says the same command again, and compares the table with that of a sweep
that was left alone. All the while a reader opens every parquet file that it sees: none may ever be
half-written.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PLAN = """
[databases]
synthetic = { count = 3, seed = 0, max_triples = 20 }
[layers]
d_model = [2]
n_heads = [1, 2]
d_head_qk = [1, 2]
d_head_vo = [1, 2]
[compute]
engine = "reference"
[recipe]
epochs = 2000
learning_rate = 0.05
stop_tau = 0.6
"""
TRIALS = 100


class Reader(threading.Thread):
    """Opens every parquet file of a folder, time and again."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self._folder, self._end = folder, threading.Event()
        self.read = 0
        self.broken: list[str] = []

    def run(self) -> None:
        """Until it is told to end."""
        while not self._end.is_set():
            for path in self._files():
                try:
                    # opened once: a file that is replaced between two openings isn't half-written
                    pq.read_table(pa.BufferReader(path.read_bytes()))
                    self.read += 1
                except FileNotFoundError:
                    # rows of an unfinished shard go when it is whole
                    continue
                except (OSError, ValueError, pa.ArrowException) as error:
                    self.broken.append(f"{path.name}: {error}")
            time.sleep(0.01)

    def _files(self) -> list[Path]:
        found: list[Path] = []
        for pattern in ("*.parquet", "*/*.parquet"):
            # as the folder of unfinished shards does
            with suppress(FileNotFoundError):
                found.extend(self._folder.glob(pattern))
        return found

    def end(self) -> None:
        """End, and wait for it."""
        self._end.set()
        self.join()


def command(folder: Path, workers: int) -> list[str]:
    (folder / "plan.toml").write_text(PLAN)
    return [sys.executable, "-m", "capacity.cli", "sweep", str(folder / "plan.toml"),
            "--out", str(folder / "out"), "--workers", str(workers)]  # fmt: skip


def alone(folder: Path, workers: int) -> tuple[bytes, float]:
    """The table of a sweep that is left alone, and the seconds that it takes."""
    start = time.monotonic()
    subprocess.run(command(folder, workers), check=True, stdout=subprocess.DEVNULL)
    return (folder / "out" / "runs.parquet").read_bytes(), time.monotonic() - start


def trial(folder: Path, *, moment: float, workers: int, table: bytes) -> dict[str, Any]:
    """Kill a sweep at a moment, go on, and compare."""
    out = folder / "out"
    reader = Reader(out)
    reader.start()
    process = subprocess.Popen(
        command(folder, workers), start_new_session=True, stdout=subprocess.DEVNULL
    )
    time.sleep(moment)
    running = process.poll() is None
    if running:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    while is_alive(process.pid):
        time.sleep(0.01)
    done = len(list(out.glob("shards/*.parquet")))
    unfinished = len(list(out.glob("unfinished/*.parquet")))
    parts = len(list(out.rglob("*.part")))
    subprocess.run(command(folder, workers), check=True, stdout=subprocess.DEVNULL)
    reader.end()
    return {
        "moment": round(moment, 3),
        "workers": workers,
        "killed": running,
        "shards_done": done,
        "shards_unfinished": unfinished,
        "temporaries_left": parts,
        "temporaries_in_the_end": len(list(out.rglob("*.part"))),
        "identical": (out / "runs.parquet").read_bytes() == table,
        "files_read": reader.read,
        "broken": reader.broken,
    }


def is_alive(group: int) -> bool:
    """Whether any process of a group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def measured(
    task: tuple[int, float, int], *, seconds: dict[int, float], table: str
) -> dict[str, Any]:
    number, share, workers = task
    moment = share * seconds[workers]
    with tempfile.TemporaryDirectory() as folder:
        row = trial(Path(folder), moment=moment, workers=workers, table=Path(table).read_bytes())
    return {"trial": number, **row}


def main() -> None:
    from record import run_all, write

    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--out", type=Path, default=Path("runs/soak_sweep.jsonl"))
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    whole = options.out.with_suffix(".parquet")
    seconds: dict[int, float] = {}
    for workers in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            table, seconds[workers] = alone(Path(folder), workers)
        if workers == 2:
            assert table == whole.read_bytes()
        whole.write_bytes(table)
    rng = np.random.default_rng(0)
    # moments as shares of the whole: the same tasks on any machine, and when it goes on
    shares = rng.uniform(size=options.trials).tolist()
    tasks = [(n, share, 1 + n % 2) for n, share in enumerate(shares)]
    run = partial(measured, seconds=seconds, table=str(whole))
    rows = run_all(run, tasks, kept=options.out, workers=1)
    summary = {
        "trials": len(rows),
        "killed": sum(row["killed"] for row in rows),
        "identical": sum(row["identical"] for row in rows),
        "half_written_files_read": sum(len(row["broken"]) for row in rows),
        "files_read": sum(row["files_read"] for row in rows),
        "killed_while_writing": sum(row["temporaries_left"] > 0 for row in rows),
        "temporaries_in_the_end": sum(row["temporaries_in_the_end"] for row in rows),
        "killed_with_rows_of_unfinished_shards": sum(row["shards_unfinished"] > 0 for row in rows),
        "shards_done_when_killed": {
            str(n): sum(row["shards_done"] == n for row in rows)
            for n in sorted({row["shards_done"] for row in rows})
        },
    }
    wrong = [row for row in rows if not row["identical"] or row["broken"]]
    write(
        "soak_sweep",
        what="a sweep's process group is killed at a random moment, and the command said again",
        peer="the same sweep, left alone",
        rows=[summary, *wrong],
        packages=["pyarrow", "torch"],
    )


if __name__ == "__main__":
    main()
