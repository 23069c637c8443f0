"""The headline figures of this library, each in a few seconds: what `make bench` measures.

A figure is a function in a module here and a line in its `FIGURES`; its limit is a table in
`benchmarks/limits.toml`. A new module is a line below.
"""

from __future__ import annotations

from headlines import attention, claims, loading, ranks, starts, sweeps
from headlines.figure import Figure

MODULES = (ranks, claims, sweeps, starts, loading, attention)
FIGURES: dict[str, Figure] = {
    name: figure for module in MODULES for name, figure in module.FIGURES.items()
}
