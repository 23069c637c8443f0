"""Compare docstrings and messages with their rules.

    python tools/check_docstrings.py [PATH ...]

* A summary is one line and a sentence or a noun phrase of the field; it doesn't begin with a word
  such as "What" or "Of", which leaves the thing itself unnamed.
* Words of tools/words.toml are in no docstring and no message, and those with `code = true` in no
  line at all. A message is a text of several words: of an error, a warning, `--help`, a page.
* A public function has a summary, Parameters, Returns, Raises where it raises, and an example that
  runs; numpydoc's own rules hold for it.
* Raises names the library's errors and not the built-in ones that they derive from.

With paths, only what is defined in these files or folders is looked at.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from numpydoc.validate import validate

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tools.words import NOT_PROSE, Place, places, without_examples, words  # noqa: E402

ROOMS = ("", "tensor", "database", "rank", "layer", "evaluator", "sweep", "transformer", "plots",
         "recall", "report", "testing")  # fmt: skip
FIRST = {"What", "Whether", "Of", "Which", "How", "Who", "Whose", "That", "So", "From", "Where"}
# numpydoc's: summary, parameters and returns of functions
RULES = {"GL08", "SS02", "SS03", "SS05", "SS06", "PR01", "PR02", "PR03", "PR04", "PR07", "RT01",
         "RT03", "YD01", "EX01"}  # fmt: skip
REFUSES = ("require_", "check_", "checked_")
BUILT_IN = re.compile(r"^\s*(ValueError|TypeError|KeyError|MemoryError|OSError|ImportError)\b")


def of_files(paths: list[Path]) -> Iterator[str]:
    """Yield the faults of docstrings, messages and words in some modules."""
    refused = [word for word in words() if word.code]
    for path in paths:
        text = path.read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(), start=1):
            for word in refused:
                if word.pattern.search(line):
                    yield f"{path.relative_to(ROOT)}:{number}: {word.word!r}: use {word.use}"
        tree = ast.parse(text)
        yield from _docstrings(path, tree)
        yield from _messages(path, tree)


def _docstrings(path: Path, tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            continue
        text = ast.get_docstring(node)
        if text is None:
            continue
        where = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"
        for place in places(without_examples(text)):
            line = node.body[0].lineno + place.line - 1
            yield _fault(path, line, place)
        first = text.split()[0].strip(",:")
        if first in FIRST:
            yield f"{where}: the summary begins with {first!r}: {text.splitlines()[0]}"
        raises = re.search(r"Raises\n-+\n(.*?)(\n\n\w+\n-+\n|\Z)", text, re.DOTALL)
        for line in raises[1].splitlines() if raises else ():
            if BUILT_IN.match(line):
                yield f"{where}: Raises names {line.strip()}, and not the library's error"


def _messages(path: Path, tree: ast.Module) -> Iterator[str]:
    # a string that is a statement is a docstring, or a remark
    remarks = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    templates = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    parts = {id(part) for template in templates for part in template.values}
    for node in ast.walk(tree):
        if id(node) in remarks or id(node) in parts:
            continue
        text = _text_of(node)
        # one word is a name or a key
        for place in places(text) if " " in text.strip() else ():
            yield _fault(path, getattr(node, "lineno", 1), place)


def _text_of(node: ast.AST) -> str:
    """The text of a string, or of a template, in which a sign denotes each value."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_text_of(value) or NOT_PROSE for value in values)
    return ""


def _fault(path: Path, line: int, place: Place) -> str:
    return f"{path.relative_to(ROOT)}:{line}: {place.text!r}: use {place.word.use}"


def of_public_functions(paths: list[Path]) -> Iterator[str]:
    """Yield the faults of public functions that are defined in some files."""
    seen: set[object] = set()
    for room in ROOMS:
        face = ".".join(filter(None, ("capacity", room)))
        package = importlib.import_module(face)
        for name in sorted(getattr(package, "__all__", vars(package))):
            value = getattr(package, name)
            # a decorated function lies where its decorator does
            value = inspect.unwrap(value) if callable(value) else value
            if name.startswith("_") or not inspect.isfunction(value) or value in seen:
                continue
            if not value.__module__.startswith(face):
                continue
            seen.add(value)
            file = Path(inspect.getsourcefile(value) or "")
            if file not in paths:
                continue
            where = f"{file.relative_to(ROOT)}: {face}.{name}"
            for code, what in validate(f"{value.__module__}.{value.__qualname__}")["errors"]:
                if code in RULES and not (code in {"RT01", "YD01"} and _returns_nothing(value)):
                    yield f"{where}: {code} {what}"
            text = inspect.getdoc(value) or ""
            if "Raises\n---" not in text and _raises(value):
                yield f"{where}: it raises, and its docstring has no Raises"


def _returns_nothing(function: object) -> bool:
    return str(getattr(function, "__annotations__", {}).get("return")) == "None"


def _raises(function: object) -> bool:
    """True if the function itself raises, or calls what refuses its arguments."""
    for node in ast.walk(ast.parse(inspect.getsource(function))):  # type: ignore[arg-type]
        if isinstance(node, ast.Raise):
            return True
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Name) and called.id.startswith(REFUSES):
            return True
    return False


def main() -> None:
    """Print what is wrong, a line each, and exit with 1 if there is anything."""
    given = [Path(one).resolve() for one in sys.argv[1:]]
    files = [
        path
        for path in sorted((ROOT / "capacity").rglob("*.py"))
        if not given or any(path == one or one in path.parents for one in given)
    ]
    wrong = [*of_files(files), *of_public_functions(files)]
    print("\n".join(wrong))
    print(f"{len(wrong)} to fix in {len(files)} files")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
