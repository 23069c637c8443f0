"""Pages of the API, one for each room, with every public name.

    python docs/_extensions/public_names.py

writes docs/api as the repository shows it: each name with the first paragraph of its docstring and
a link to its source. When the site is built, the whole docstrings take the place of both.
tests/test_api_pages.py compares the files with the library.
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "api"
INDEX = "# Every public name"
PARAGRAPH = r"\n\s*\n"
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
    "capacity.recall": "Which facts a language model knows.",
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
    return f".. py:data:: {room}.{name}\n\n   {kind_of(value)}\n"


def kind_of(value: object) -> str:
    """Describe a name without a docstring: an alias of a type, or a registry."""
    text = re.sub(r"\s+", " ", str(value)).replace("capacity.", "")
    return "A registry." if isinstance(value, dict | list) else f"Stands for ``{text:.160}``."


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


def opening(room: str) -> str:
    """The heading of a room, and what it contains."""
    doc = inspect.getdoc(importlib.import_module(room)) or ""
    return f"# {room}\n\n{ROOMS[room]} {re.split(PARAGRAPH, doc)[0].replace('``', '`')}\n"


def site_page(room: str) -> str:
    """The page of a room for the site, with a directive for each name."""
    names = [
        f"## {name}\n\n```{{eval-rst}}\n{directive(room, name)}```\n" for name in public_names(room)
    ]
    return "\n".join([opening(room), *names])


def summary(room: str, name: str) -> str:
    """The first paragraph of a docstring as Markdown, and the link to the source."""
    value = getattr(importlib.import_module(room), name)
    documented = inspect.isclass(value) or inspect.isroutine(value)
    text = re.split(PARAGRAPH, inspect.getdoc(value) or "")[0] if documented else kind_of(value)
    # inline code has two ticks in reStructuredText, and a reference one
    text = re.sub(r"\s+", " ", text.replace("``", "`")).strip()
    return f"{text} [Source]({source_of(room, value)})"


def source_of(room: str, value: Any) -> str:
    """The file that defines a name of a room, as a link of a page of the API."""
    try:
        file = Path(inspect.getsourcefile(inspect.unwrap(value)) or "")
    except TypeError:
        file = Path()
    if not file.is_relative_to(ROOT):
        file = Path(str(importlib.import_module(room).__file__))
    return f"../../{file.relative_to(ROOT).as_posix()}"


def repository_page(room: str) -> str:
    """The page of a room for the repository, where no directive is executed."""
    names = [f"## {name}\n\n{summary(room, name)}\n" for name in public_names(room)]
    return "\n".join([opening(room), *names])


def repository_pages() -> dict[str, str]:
    """All files of docs/api, by name."""
    index = [f"* [{room}]({room}.md): {text}" for room, text in ROOMS.items()]
    texts = {room: repository_page(room) for room in ROOMS}
    return {f"{name}.md": text for name, text in texts.items()} | {
        "index.md": "\n".join([f"{INDEX}\n", *index, ""])
    }


def replace(_app: Any, page: str, source: list[str]) -> None:
    """Put the text of the site in the place of that of the repository."""
    if page == "docs/api/index":
        source[0] = "\n".join([f"{INDEX}\n", "```{toctree}", *ROOMS, "```\n"])
    elif page.startswith("docs/api/"):
        source[0] = site_page(page.removeprefix("docs/api/"))


def setup(app: Any) -> dict[str, Any]:
    """Replace the pages when they are read."""
    app.connect("source-read", replace)
    app.connect("autodoc-process-docstring", escape_bars)
    return {"parallel_read_safe": True}


def main() -> None:
    """Write docs/api, and remove pages of rooms that are no more."""
    for path in FOLDER.glob("*.md"):
        path.unlink()
    for name, text in repository_pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
