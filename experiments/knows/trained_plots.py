"""Figures of what decoders know that are trained here."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure


def plot(tables: dict[str, pd.DataFrame], found: dict[str, Any]) -> dict[str, Figure]:
    """None yet."""
    return {}
