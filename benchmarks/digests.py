"""Digests of the code that a record measures: equal for equal code, whatever its comments say."""

from __future__ import annotations

import ast
import hashlib
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DOCUMENTED = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef


def registered() -> dict[str, dict[str, Any]]:
    """Read the table of each record in `records.toml`."""
    return tomllib.loads((ROOT / "benchmarks" / "records.toml").read_text(encoding="utf-8"))


def git(*arguments: str, root: Path = ROOT) -> str:
    """Return what git says; empty where there is no repository, or no such commit."""
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return done.stdout.strip()


def digest_here(modules: Sequence[str], root: Path = ROOT) -> str:
    """Return the digest of the code of these modules in the working tree."""
    return _digest(_files_here(modules, root))


def digest_at(commit: str, modules: Sequence[str], root: Path = ROOT) -> str:
    """Return their digest at a commit of the repository."""
    names = git("ls-tree", "-r", "--name-only", commit, "--", *modules, root=root).split()
    return _digest((name, git("show", f"{commit}:{name}", root=root)) for name in sorted(names))


@cache
def code(text: str) -> str:
    """Return a module's code in a form without comments, docstrings and layout."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    # Python 3.13 leaves out what is empty unless it is asked for
    return ast.dump(tree, **({"show_empty": True} if sys.version_info >= (3, 13) else {}))


def _files_here(modules: Sequence[str], root: Path) -> Iterator[tuple[str, str]]:
    found: set[Path] = set()
    for module in modules:
        mine = [root / module] if module.endswith(".py") else [*(root / module).rglob("*.py")]
        if not mine:
            raise ValueError(f"records.toml must name modules that exist; {module} doesn't.")
        found.update(mine)
    for path in sorted(found, key=lambda path: path.relative_to(root).as_posix()):
        yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")


def _digest(files: Iterator[tuple[str, str]]) -> str:
    of = hashlib.sha256()
    for name, text in files:
        if name.endswith(".py"):
            of.update(f"{name}\n{code(text)}\n".encode())
    return of.hexdigest()[:16]
