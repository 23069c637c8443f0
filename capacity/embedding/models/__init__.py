"""Families of models: one in each module of this folder, which names its `Model` as ``MODEL``."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capacity.embedding.model import Model
    from capacity.embedding.queries import Task


def _found() -> dict[str, Model]:
    names = sorted(one.name for one in pkgutil.iter_modules(__path__))
    found = [importlib.import_module(f"{__name__}.{name}").MODEL for name in names]
    return {model.name: model for model in found}


MODELS = _found()


def models_of(task: Task) -> tuple[str, ...]:
    """List the names of the families that can be asked for a task."""
    return tuple(n for n, model in MODELS.items() if model.both_sides or task != "both-sides")
