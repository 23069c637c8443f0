"""A process that compiles ahead: python -m capacity.layer.engines.ahead < "FUNCTION ARGUMENTS".

Its imports take half a second, and what to compile may not be known yet: so they come first, and
the function, ``package.module:function``, is called with the other words of the line that comes
then. The process ends without it, if no line comes.
"""

from __future__ import annotations

import gc
import sys

# it imports numba
import capacity.layer.engines.simd.compile  # noqa: F401
from capacity.layer.engines.engine import loaded


def main() -> None:
    """Call the function that a line of the standard input names, with its other words."""
    if words := sys.stdin.readline().split():
        loaded(words[0])(*words[1:])


if __name__ == "__main__":
    # searches for garbage take a tenth of the time, and this process ends soon
    gc.disable()
    main()
