"""How soon `capacity rank` answers, beside importing what it can't do without."""

from __future__ import annotations

import subprocess
import sys

from record import environment
from start import COMMANDS

from headlines.figure import Figure, ratio

RANK = COMMANDS["capacity rank figure-1.ttl"]
# the same command, and the number of modules that it has loaded
COUNTED = """
import sys
from capacity.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print(len(sys.modules), file=sys.stderr)
"""


def run(*arguments: str) -> str:
    """Run Python and return what it says on its standard error."""
    done = subprocess.run(
        [sys.executable, *arguments], check=True, capture_output=True, text=True, env=environment()
    )
    return done.stderr


def start() -> float:
    """CPU seconds of the command, in units of the imports alone."""
    return ratio(lambda: run(*RANK), lambda: run(*COMMANDS["imports"]), repeats=5)


def modules() -> float:
    """Modules that the command loads."""
    return int(run("-c", COUNTED, *RANK[2:]).split()[-1])


FIGURES = {
    "start": Figure("ratio", "importing numpy, scipy.sparse, typer, flint and rich", start),
    "modules at start": Figure("count", "modules imported by capacity rank", modules),
}
