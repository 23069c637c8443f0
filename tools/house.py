"""Count the house: files, code, docstrings, folders, public names; list what is too large or small.

    python tools/house.py

Lines of code hold a token that belongs to no comment and no docstring (CONTRIBUTING, "Code").
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1] / "capacity"
# of a module, of a folder but the one that is a flat list on purpose
MOST_CODE, MOST_FILES, LONG_LIST = 250, 12, "rank/verifier/kinds"
LEAST_CODE = 30
_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
            tokenize.ENDMARKER}  # fmt: skip


@dataclass(frozen=True)
class Module:
    """A file of Python, and what its lines hold."""

    path: Path

    @cached_property
    def text(self) -> str:
        """Content of the file."""
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def docstrings(self) -> set[int]:
        """Numbers of the lines of its docstrings."""
        lines: set[int] = set()
        for node in ast.walk(ast.parse(self.text)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
                node
            ):
                first = node.body[0]
                lines |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
        return lines

    @cached_property
    def code(self) -> int:
        """Number of its lines of code."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        lines: set[int] = set()
        for token in tokens:
            if token.type not in _NO_CODE:
                lines |= set(range(token.start[0], token.end[0] + 1))
        return len(lines - self.docstrings)


def modules() -> list[Module]:
    """All modules, those of `__init__.py` too."""
    return [Module(path) for path in sorted(ROOT.rglob("*.py"))]


def too_long(every: list[Module]) -> dict[str, int]:
    """Modules of more code than one may have."""
    return {_name(one.path): one.code for one in every if one.code > MOST_CODE}


def crowded(every: list[Module]) -> dict[str, int]:
    """Folders of more files than one may have."""
    # the number of the version is a file for what builds the package
    folders = Counter(one.path.parent for one in every if one.path.name != "_version.py")
    return {
        _name(folder): n
        for folder, n in folders.items()
        if n > MOST_FILES and _name(folder) != LONG_LIST
    }


def public_names() -> dict[str, int]:
    """Number of names in each package's stub."""
    return {
        _name(stub.parent): sum(" as " in line for line in stub.read_text().splitlines())
        for stub in sorted(ROOT.glob("*/__init__.pyi"))
    }


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def main() -> None:
    """Print the counts."""
    every = modules()
    code = sum(one.code for one in every)
    lines = sum(one.text.count("\n") for one in every)
    docstrings = sum(len(one.docstrings) for one in every)
    small = [
        _name(one.path) for one in every if one.code < LEAST_CODE and one.path.stem != "__init__"
    ]
    print(f"files: {len(every)}, lines: {lines:,}, code: {code:,}, docstrings: {docstrings:,}")
    print(f"folders: {len({one.path.parent for one in every})}, crowded: {crowded(every)}")
    print(f"over {MOST_CODE} lines of code: {too_long(every)}")
    print(f"under {LEAST_CODE}: {len(small)}: {' '.join(small)}")
    names = public_names()
    print(f"public names: {sum(names.values())}: {names}")


if __name__ == "__main__":
    main()
