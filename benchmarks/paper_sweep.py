"""How long the paper's whole experiment takes: `capacity sweep experiments/configs/paper.toml`.

    python benchmarks/paper_sweep.py [--workers 1,2]

Wall time of the whole command in an empty folder, and what of it was training, by the sweep's own
logs. The kernels are compiled before, for that is done once on a machine; that time is told.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from record import write

from capacity.sweep import load

CONFIG = Path(__file__).parents[1] / "experiments/configs/paper.toml"


def command(config: Path, folder: str, workers: int) -> float:
    """Seconds of the whole command."""
    line = [sys.executable, "-m", "capacity.cli", "sweep", str(config), "--out", folder,
            "--workers", str(workers)]  # fmt: skip
    start = time.monotonic()
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL, env={**os.environ,
                   "OMP_NUM_THREADS": "1"})  # fmt: skip
    return time.monotonic() - start


def compiled() -> float:
    """Seconds of one epoch of runs of every kind, in one process."""
    text = CONFIG.read_text()
    assert "pairs = 3947" in text
    text = text.replace("pairs = 3947", "pairs = 60") + "\n[recipe]\nepochs = 1\n"
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "warm.toml"
        config.write_text(text)
        return command(config, f"{folder}/out", 1)


def measured(workers: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        seconds = command(CONFIG, folder, workers)
        table = load(folder)
        logs = Path(folder).glob("log-*.jsonl")
        lines = [json.loads(text) for log in logs for text in log.read_text().split("\n") if text]
    training = sum(line.get("seconds", 0.0) for line in lines)
    return {
        "workers": workers,
        "seconds": round(seconds, 1),
        "seconds_in_shards": round(training, 1),
        "runs": len(table),
        "shards": len(lines),
        "run_epochs": int(table["epochs"].sum()),
        "status": {str(k): int(v) for k, v in table["status"].value_counts().items()},
        "engine": sorted(table["engine"].unique()),
        "microseconds_a_run_epoch": round(1e6 * training / float(table["epochs"].sum()), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", default="1,2")
    options = parser.parse_args()
    warm = [round(compiled(), 1) for _ in range(2)]
    rows = [measured(int(n)) for n in options.workers.split(",")]
    rows.append(
        {"what": "60 runs of one epoch: first, with compilation, and again", "seconds": warm}
    )
    write(
        "paper_sweep",
        what="wall time of the paper's 3,947 runs of at most 2,000 epochs, whole command",
        peer="none: the naive loop is measured by sweep_speed.py",
        rows=rows,
        packages=["torch", "numba", "pyarrow"],
    )


if __name__ == "__main__":
    main()
