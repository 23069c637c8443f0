"""Print the modules of all experiments, one a line; or make all pages from the committed tables.

python -m experiments [--plot]
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from experiments import EXPERIMENTS


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description="All experiments.")
    parser.add_argument(
        "--plot", action="store_true", help="conclusions, figures and pages from committed tables"
    )
    if not parser.parse_args().plot:
        print(*EXPERIMENTS.values(), sep="\n")
        return
    for module in EXPERIMENTS.values():
        print(module, flush=True)
        command = [sys.executable, "-m", module, "--plot"]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    main()
