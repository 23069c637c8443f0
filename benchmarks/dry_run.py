"""How far `capacity sweep --dry-run` is from the time that the sweep takes, on an idle machine.

    python benchmarks/dry_run.py [--plans small,larger,ranks,shards] [--repeats 3]

Wall time of the whole command in an empty folder, beside what the dry run of the same command says.
No run stops early, since nobody knows beforehand which do. The first run of each may compile
kernels, which others find; it has a ratio of its own. About eight minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from record import write

# what most of each takes: starting, layers too large for the fused engine, certified ranks of
# databases, and shards, which are also those of layers that autograd alone can train
PLANS: dict[str, tuple[int, str]] = {
    "small": (1, """
[databases]
synthetic = { count = 4, max_triples = 20 }
[layers]
d_model = [2, 3]
n_heads = [1, 2]
d_head_qk = [1, 2]
d_head_vo = [1, 2]
[recipe]
epochs = 300
stop_tau = 0
"""),
    "larger": (1, """
[databases]
synthetic = { count = 6, triples = [200, 400], subjects = [10, 30], predicates = [4, 10] }
[layers]
d_model = [32, 64]
n_heads = [2, 4]
d_head_qk = [16]
d_head_vo = [16]
[recipe]
epochs = 1000
stop_tau = 0
"""),
    "ranks": (2, """
[databases]
synthetic = { count = 400, triples = [80, 200] }
[layers]
d_model = [4]
n_heads = [2]
d_head_qk = [2]
d_head_vo = [2]
[recipe]
epochs = 50
stop_tau = 0
"""),
    "shards": (2, """
[databases]
synthetic = { count = 10, max_triples = 60 }
[layers]
d_model = [4]
n_heads = [1, 2]
d_head_qk = [2]
d_head_vo = [2]
layer_norm = [true]
bias = [true, false]
[recipe]
epochs = 2000
stop_tau = 0
"""),
}  # fmt: skip


def command(config: Path, workers: int, *options: str) -> tuple[float, str]:
    """Seconds of a whole command, and what it prints."""
    line = [sys.executable, "-m", "capacity.cli", "sweep", str(config), "--workers", str(workers)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    start = time.monotonic()
    done = subprocess.run(
        [*line, *options], check=True, capture_output=True, text=True, env=environment
    )
    return time.monotonic() - start, done.stdout


def measured(name: str, repeats: int) -> dict[str, Any]:
    workers, text = PLANS[name]
    seconds: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "plan.toml"
        config.write_text(text)
        # with kernels to compile, on a machine that is new to them
        said_first = json.loads(command(config, workers, "--dry-run", "--json")[1])
        first, _ = command(config, workers, "--out", f"{folder}/first")
        said = json.loads(command(config, workers, "--dry-run", "--json")[1])
        seconds += [command(config, workers, "--out", f"{folder}/{i}")[0] for i in range(repeats)]
    median = statistics.median(seconds)
    return {
        "plan": name,
        "repeats": repeats,
        "seconds": round(median, 1),
        "seconds_of_each": [round(one, 1) for one in seconds],
        "seconds_of_the_first": round(first, 1),
        "ratio_of_the_first": round(said_first["seconds"] / first, 2),
        "ratio": round(said["seconds"] / median, 2),
        "within_a_factor_of_two": all(
            0.5 <= ratio <= 2 for ratio in (said["seconds"] / median, said_first["seconds"] / first)
        ),
        "said": said,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--plans", default=",".join(PLANS))
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    write(
        "dry_run",
        what="what a dry run says, over the wall time of the whole sweep",
        peer="the sweep itself",
        rows=[measured(name, options.repeats) for name in options.plans.split(",")],
        packages=["torch", "numba", "pyarrow"],
    )


if __name__ == "__main__":
    main()
