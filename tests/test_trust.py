"""The page on trust names what is trusted, and no less."""

import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

from tests.oracles import ROOT

PAGE = (ROOT / "docs" / "trust.md").read_text()
RANKS, DIMENSIONS = PAGE.split("## The code that a verified dimension rests on")
DIMENSIONS = DIMENSIONS.partition("\n## ")[0]


def lines_of_code(path: Path) -> int:
    """Lines that hold a token, but for comments and docstrings."""
    text = path.read_text()
    prose: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            first = node.body[0]
            prose |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    empty = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
             tokenize.ENDMARKER}  # fmt: skip
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in empty:
            code |= set(range(token.start[0], token.end[0] + 1))
    return len(code - prose)


def loaded_by(module: str) -> dict[str, Path]:
    """Files of this library's modules that a fresh interpreter loads with one of them."""
    script = f"""
import json, sys
import {module}
print(json.dumps({{n: m.__file__ for n, m in sys.modules.items() if n.startswith("capacity.")}}))
"""
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name: Path(file) for name, file in json.loads(out.stdout).items()}


def assert_tables_have(modules: dict[str, Path], text: str) -> None:
    """Assert that the tables of a text name these modules, each once, and how long they are."""
    rows = re.findall(r"^\| (`[^|]+) \| (\d+) \|", text, re.MULTILINE)
    said = {tuple(re.findall(r"`([\w.]+)`", names)): int(n) for names, n in rows}
    assert sorted(name for names in said for name in names) == sorted(modules)
    for names, n in said.items():
        counted = sum(lines_of_code(modules[name]) for name in names)
        assert abs(n - counted) <= 2 + counted // 20, (names, counted)


@pytest.mark.slow
def test_the_page_names_every_module_that_verify_loads_and_how_long_it_is() -> None:
    loaded = loaded_by("capacity.rank.verifier.checker")
    room = "capacity.rank.verifier."
    mine = {n.removeprefix(room): f for n, f in loaded.items() if room in n}
    # a package without code of its own
    del mine["procedures"]
    assert_tables_have(mine, RANKS)
    total = int(re.findall(r"about ([\d,]+) lines of code", PAGE)[0].replace(",", ""))
    assert abs(total - sum(map(lines_of_code, mine.values()))) < 100
    rooms = {name.split(".")[1] for name in loaded} - {"_version"}
    others = {"errors", "checks", "display", "optional", "visible", "converters", "safe_files",
              "reading_limits"}  # fmt: skip
    assert rooms == {"rank", "database", "tensor", "exact", *others}
    assert all(f"`capacity.{room}`" in PAGE for room in rooms - {"rank"})
    parts = {n.rpartition(".")[2] for n in loaded if re.match(r"capacity\.(database|tensor)\.", n)}
    assert all(f"`{part}`" in PAGE for part in parts)


@pytest.mark.slow
def test_the_page_names_every_module_that_a_check_of_a_dimension_loads() -> None:
    loaded = loaded_by("capacity.embedding.verifier.checker")
    room = "capacity.embedding."
    mine = {n.removeprefix(room): f for n, f in loaded.items() if room in n}
    # a package without code of its own
    del mine["verifier"]
    assert_tables_have(mine, DIMENSIONS)
    # of the rank, its verifier and what counts exact ranks
    of_ranks = {n.removeprefix("capacity.rank.") for n in loaded if "capacity.rank." in n}
    assert {n for n in of_ranks if not n.startswith("verifier")} == {"given", "options"}
    exact = {n.removeprefix("capacity.exact.") for n in loaded if "capacity.exact." in n}
    assert exact == {"types", "ranks", "peeling", "elimination", "block_rank"}
    assert all(f"`{name}`" in DIMENSIONS for name in exact - {"types"})
    assert all(f"`capacity.rank.{name}`" in DIMENSIONS for name in ("given", "options"))


def test_every_test_and_record_that_the_page_names_is_there() -> None:
    for name in re.findall(r"`((?:tests|benchmarks)/[\w/.]+)`", PAGE):
        assert (ROOT / name).exists(), name
    targets = re.findall(r"`make ([\w-]+)`", PAGE)
    makefile = (ROOT / "Makefile").read_text()
    assert targets
    assert all(f"\n{target}:" in makefile for target in targets)
