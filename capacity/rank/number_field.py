"""The fields over which ranks are bounded. The command line loads it before all else."""

from __future__ import annotations

from typing import Literal, TypeAlias

Field: TypeAlias = Literal["Q", "R", "C"]
FIELDS: dict[Field, str] = {
    "Q": "the rational numbers",
    "R": "the real numbers",
    "C": "the complex numbers",
}
