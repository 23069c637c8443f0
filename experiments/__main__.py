"""Print the modules of all experiments, one a line; run them; or make all pages.

python -m experiments [--run | --plot]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

from experiments import EXPERIMENTS, NEEDS


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description="All experiments.")
    parser.add_argument(
        "--run",
        action="store_true",
        help="make all tables, one experiment a core at a time",
    )
    parser.add_argument(
        "--plot", action="store_true", help="conclusions, figures and pages from committed tables"
    )
    options = parser.parse_args()
    if options.run:
        run()
    elif options.plot:
        for module in EXPERIMENTS.values():
            print(module, flush=True)
            command = [sys.executable, "-m", module, "--plot"]
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    else:
        print(*EXPERIMENTS.values(), sep="\n")


def run() -> None:
    """Run all experiments, the longest first by their records."""
    from experiments.common.all_runs import run_all
    from experiments.common.harness import COSTS, RUNS, results_of

    costs: dict[str, float] = {}
    for name in EXPERIMENTS:
        record = json.loads((results_of(name) / f"{name}.json").read_text())
        costs[name] = max(record.get(key) or 0 for key in COSTS)
    failed = run_all(EXPERIMENTS, NEEDS, costs, RUNS / "all", at_a_time=min(os.cpu_count() or 1, 8))
    if failed:
        sys.exit(f"failed, or not begun: {', '.join(failed)}")


if __name__ == "__main__":
    main()
