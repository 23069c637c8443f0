"""Warnings that name the user's line, however deep in the library they arise."""

from __future__ import annotations

import sys
import warnings


def warn_caller(message: Warning) -> None:
    """Warn at the innermost line outside of this library that led here.

    Python shows a warning once a line by default: at a line of the library one user's call would
    hide all later ones.
    """
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and _is_of_library(frame.f_globals):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


def _is_of_library(names: dict[str, object]) -> bool:
    return str(names.get("__name__", "")).partition(".")[0] == __name__.partition(".")[0]
