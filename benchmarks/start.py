"""How long a small answer takes from the shell, beside importing what it can't do without.

    python benchmarks/start.py

Wall seconds of `capacity rank examples/figure-1.ttl`, warm, and of a process that imports numpy,
scipy.sparse, typer, flint and rich and does nothing, or runs an empty command by typer, which loads
pydantic for it; interleaved, median of five.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

from record import environment, write

IMPORTS = "import numpy, scipy.sparse, typer, flint, rich"
EMPTY = f"""
{IMPORTS}
app = typer.Typer()
@app.command()
def command(file: str): pass
app(["file"], standalone_mode=False)
"""
EXAMPLES = Path(__file__).parents[1] / "examples"
COMMANDS = {
    "python alone": ["-c", "pass"],
    "imports": ["-c", IMPORTS],
    "imports, and an empty command of typer": ["-c", EMPTY],
    "capacity --help": ["-m", "capacity.cli", "--help"],
    "capacity rank figure-1.ttl": ["-m", "capacity.cli", "rank", str(EXAMPLES / "figure-1.ttl")],
    "capacity rank countries.ttl": ["-m", "capacity.cli", "rank", str(EXAMPLES / "countries.ttl")],
}


def main() -> None:
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    # the first round, which isn't counted, warms the files
    for turn in range(6):
        for name, arguments in COMMANDS.items():
            start = time.perf_counter()
            subprocess.run(
                [sys.executable, *arguments], check=True, capture_output=True, env=environment()
            )
            if turn:
                times[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(values) for name, values in times.items()}
    rows = [
        {
            "what": name,
            "seconds": round(seconds, 3),
            "least": round(min(times[name]), 3),
            "ratio_to_imports": round(seconds / medians["imports"], 2),
        }
        for name, seconds in medians.items()
    ]
    write(
        "start",
        rows=rows,
        what="wall seconds of a process, median of 5, warm",
        peer="a process that imports numpy, scipy.sparse, typer, flint and rich",
        packages=["numpy", "scipy", "typer", "python-flint", "rich"],
    )


if __name__ == "__main__":
    main()
