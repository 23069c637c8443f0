"""Draw docs/architecture.png from the imports of the library.

    python tools/draw_architecture.py

An arrow leads from a room to one that it imports, also within functions; imports for type checkers
alone don't count. Modules outside rooms are the box *foundations*. Arrows that
others imply are omitted. The picture's file contains all edges as text, which
tests/test_house.py compares with today's imports.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from PIL import Image

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "capacity"
PICTURE = ROOT / "docs" / "architecture.png"
FOUNDATIONS = "foundations"
# what is no room in the sense of the picture: the package's own files, and rooms that serve all
SHARED = {"door", "installation"}
IGNORED = {"__init__", "_version", "__version__"}
# the column in which a room is drawn, and what it does; the row follows from the imports
ROOMS = {
    "cli": (4.6, "commands"),
    "report": (4.5, "pages in HTML"),
    "sweep": (4.6, "thousands of runs"),
    "recall": (6.7, "facts that models know"),
    "plots": (8.9, "figures"),
    "testing": (5.1, "Hypothesis strategies"),
    "evaluator": (8.9, "accuracies, laws"),
    "embedding": (2.15, "dimensions"),
    "rank": (2.1, "bounds, certificates"),
    "layer": (4.9, "attention layers, engines"),
    "stores": (-0.3, "counts out of memory"),
    "database": (3.4, "facts, formats"),
    "exact": (3.4, "exact matrix ranks"),
    "tensor": (3.4, "integer tensors"),
    "transformer": (8.3, "pretrained models"),
    FOUNDATIONS: (5.0, "errors, checks, files, progress, display"),
}
Edge = tuple[str, str]


def imported(path: Path) -> Iterator[str]:
    """Yield the dotted names of this library's modules that a module imports when it runs."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in _running(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "capacity":
            yield from (f"capacity.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes of a tree, without those for type checkers alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            yield from (each for other in child.orelse for each in (other, *_running(other)))
        else:
            yield child
            yield from _running(child)


def box(name: str, library: Path) -> str:
    """The box in which a room or a module at the top of the library is drawn."""
    return name if (library / name).is_dir() and name not in SHARED else FOUNDATIONS


def edges(library: Path = LIBRARY) -> list[Edge]:
    """All edges of the picture, in alphabetical order: (box, box that it imports)."""
    found: set[Edge] = set()
    for path in library.rglob("*.py"):
        first = path.relative_to(library).parts[0].removesuffix(".py")
        names = {name.split(".")[1] for name in imported(path) if name.startswith("capacity.")}
        if first in IGNORED:
            continue
        found |= {(box(first, library), box(name, library)) for name in names - IGNORED}
    return sorted((one, other) for one, other in found if one != other)


def as_text(all_edges: list[Edge]) -> str:
    """The edges as the text that the picture's file contains."""
    return "; ".join(f"{one} imports {other}" for one, other in all_edges)


def text_of(picture: Path = PICTURE) -> str:
    """The text of the edges that a picture was drawn from."""
    with Image.open(picture) as image:
        return str(image.info["Description"])


def rows(graph: nx.DiGraph) -> dict[str, int]:
    """The row of each box, counted from the bottom: one above the highest that it imports."""
    height: dict[str, int] = {}
    for name in reversed(list(nx.topological_sort(graph))):
        height[name] = max((height[other] + 1 for other in graph.successors(name)), default=0)
    return height


def draw(all_edges: list[Edge]) -> Figure:
    """The picture of some edges."""
    graph = nx.DiGraph(all_edges)
    height = rows(graph)
    figure = Figure(figsize=(8.6, 7.2), dpi=120)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-1.7, 9.9), ylim=(-0.6, max(height.values()) + 0.5))
    axes.axis("off")
    boxes = {}
    for name, row in height.items():
        column, purpose = ROOMS[name]
        boxes[name] = axes.text(
            column, row, f"$\\bf{{{name}}}$\n{purpose}", ha="center", va="center", fontsize=9.5,
            linespacing=1.35, zorder=2,
            bbox={"boxstyle": "round,pad=0.42", "facecolor": "#eef3f8", "edgecolor": "#4c6a88"},
        )  # fmt: skip
    # arrows end at boxes, whose sizes are known when they have been laid out
    figure.draw_without_rendering()
    for one, other in sorted(nx.transitive_reduction(graph).edges):
        arrow = FancyArrowPatch(
            (ROOMS[one][0], height[one]), (ROOMS[other][0], height[other]), arrowstyle="-|>",
            mutation_scale=11, color="#4c6a88", shrinkA=0, shrinkB=0, zorder=1,
            patchA=boxes[one].get_bbox_patch(), patchB=boxes[other].get_bbox_patch(),
        )  # fmt: skip
        axes.add_patch(arrow)
    return figure


def main() -> None:
    """Draw the picture, and write the edges into its file."""
    all_edges = edges()
    draw(all_edges).savefig(
        PICTURE,
        dpi="figure",
        facecolor="white",
        metadata={"Description": as_text(all_edges), "Software": None},
    )


if __name__ == "__main__":
    main()
