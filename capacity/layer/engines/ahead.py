"""A process that compiles ahead: python -m capacity.layer.engines.ahead FUNCTION < ARGUMENTS.

The function is named as ``package.module:function``. Its imports take half a second, and what to
compile may not be known yet: so they come first, and the function is called with the words of the
line that comes then. The process ends without it, if no line comes.
"""

from __future__ import annotations

import gc
import sys

from capacity.layer.engines.engine import loaded


def main(name: str) -> None:
    """Import the function, and call it once its arguments come."""
    function = loaded(name)
    if line := sys.stdin.readline():
        function(*line.split())


if __name__ == "__main__":
    # searches for garbage take a tenth of the time, and this process ends soon
    gc.disable()
    main(*sys.argv[1:])
