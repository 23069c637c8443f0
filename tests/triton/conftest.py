"""Tests of the triton engine, by `make triton-check`, which alone installs triton.

Triton reads TRITON_INTERPRET when kernels are defined, so that one process either runs them on the
CPU or compiles them.
"""

import os
from importlib.util import find_spec

if find_spec("triton") is None:
    collect_ignore = ["test_interpreted.py", "test_races.py", "test_compiled.py"]
elif os.environ.get("TRITON_INTERPRET") == "1":
    collect_ignore = ["test_compiled.py"]
else:
    collect_ignore = ["test_interpreted.py", "test_races.py"]
