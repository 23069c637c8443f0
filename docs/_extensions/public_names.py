"""Pages of the API, one a room, with every public name: written before each build."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "api"
ROOMS = {
    "capacity": "The names that most users need.",
    "capacity.tensor": "Integer tensors of any order: arrays, files, products, known ranks.",
    "capacity.database": "Facts as integer triples, from files and tables and back.",
    "capacity.rank": "Exact ranks, bounds, certificates, methods of search, CP estimates.",
    "capacity.stores": "Facts of any size, counted in files and stores, and never loaded.",
    "capacity.layer": "Attention layers, their tensor L, training, facts written by hand.",
    "capacity.embedding": "The dimension that an embedding of a graph needs: proofs and witnesses.",
    "capacity.evaluator": "Accuracies, grids of them, the capacity law, terms of a layer's logits.",
    "capacity.sweep": "Plans, and many runs.",
    "capacity.transformer": "What attention of pretrained models uses.",
    "capacity.plots": "Figures.",
    "capacity.report": "Pages to send to a colleague: about facts, a sweep, a pretrained model.",
    "capacity.testing": "Hypothesis strategies.",
    "capacity.errors": "Errors that a user can correct, and warnings.",
}


def public_names(room: str) -> list[str]:
    """Names of a room, in alphabetical order; the rooms themselves have pages of their own."""
    module = importlib.import_module(room)
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == room
    ]
    shown = [name for name in names if not inspect.ismodule(getattr(module, name))]
    return sorted((name for name in shown if name != "__version__"), key=str.lower)


def directive(room: str, name: str) -> str:
    """The directive that documents a name, or the link to the room that has it already."""
    value = getattr(importlib.import_module(room), name)
    home = next((r for r in ROOMS if r != room and r != "capacity" and has(r, name, value)), None)
    rooms = list(ROOMS)
    if home is not None and (room == "capacity" or rooms.index(home) < rooms.index(room)):
        return f"See :py:obj:`{home}.{name}`.\n"
    if inspect.isclass(value) and not hasattr(value, "__origin__"):
        if issubclass(value, BaseException):
            return f".. autoexception:: {room}.{name}\n   :members:\n"
        # what a class has from others of ours is shown, and what it has from libraries isn't
        others = sorted(
            {b.__name__ for b in value.__mro__ if not b.__module__.startswith("capacity")}
        )
        members = f"   :members:\n   :inherited-members: {', '.join(others)}\n"
        return f".. autoclass:: {room}.{name}\n{members}"
    if inspect.isroutine(value):
        return f".. autofunction:: {room}.{name}\n"
    # aliases of types, and registries
    text = re.sub(r"\s+", " ", str(value)).replace("capacity.", "")
    kind = "A registry." if isinstance(value, dict | list) else f"Stands for ``{text:.160}``."
    return f".. py:data:: {room}.{name}\n\n   {kind}\n"


def has(room: str, name: str, value: object) -> bool:
    """True if a room has a name for the same thing."""
    return getattr(importlib.import_module(room), name, None) is value


def escape_bars(
    _app: Any, _what: str, _name: str, _obj: Any, _options: Any, lines: list[str]
) -> None:
    """The size |Q| of a set is no substitution of reStructuredText."""
    parts = "\n".join(lines).split("``")
    parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
    lines[:] = "``".join(parts).split("\n")


def page(room: str) -> str:
    """The page of a room."""
    doc = inspect.getdoc(importlib.import_module(room)) or ""
    first = re.split(r"\n\s*\n", doc)[0]
    names = [
        f"## {name}\n\n```{{eval-rst}}\n{directive(room, name)}```\n" for name in public_names(room)
    ]
    return "\n".join([f"# {room}\n\n{ROOMS[room]} {first}\n", *names])


def write(_app: Any) -> None:
    """Write the pages, and leave those that haven't changed."""
    FOLDER.mkdir(exist_ok=True)
    index = ["# Every public name\n", "```{toctree}", *(room for room in ROOMS), "```\n"]
    pages = {room: page(room) for room in ROOMS} | {"index": "\n".join(index)}
    for name, text in pages.items():
        path = FOLDER / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, Any]:
    """Write the pages once the builder is there."""
    app.connect("builder-inited", write)
    app.connect("autodoc-process-docstring", escape_bars)
    return {"parallel_read_safe": True}
