"""No message lists nothing: a list in a template has an element, or the template asks for one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "capacity"
SEPARATORS = {", ", ",", " or ", " and ", "; "}
# functions whose results have elements whatever they get
_FULL = {"get_args", "policies_for", "role_names"}
# those of the elements that they are given
_OF = {"sorted", "map", "list", "tuple", "dict"}
# lists that nothing near the template says to have an element: why they have one
WHY: dict[str, str] = {
    "checks.py: choices": "a choice is among some",
    "checks.py: names": "a class of options has some",
    "cli/proofs.py: ends": "a proof has one end at least",
    "cli/results.py: map(str, value)": "options that were given alone are written",
    "cli/messages.py: possible": "each command has --help",
    "database/choosing/selection.py: each": "the method returns before, where nothing is omitted",
    "database/describing/writing.py: values": "an example of several objects has two",
    "database/io/files/formats.py: map(shown, names)": "a format has a name",
    "database/io/files/several.py: names": "an empty list of files is refused before",
    "cli/sources/files.py: names": "a command is about files",
    "database/io/libraries/pandas.py: map(str, wanted)": "facts have two columns at least",
    "database/io/reading.py: known": "a reader has options",
    "database/policy.py: others": "several policies make facts functional",
    "display.py: kinds": "an empty value is written as it is",
    "display.py: parts": "a repr, which may have no fields",
    "embedding/results/page.py: models": "a model has brought each entry",
    "embedding/results/serialization.py: texts": "JSON, and no sentence: an empty list is one",
    "embedding/results/serialization.py: known": "the choices of a field are constants",
    "embedding/verifier/conversion.py: expected": "each model has factors",
    "evaluator/laws/grid.py: needed": "a grid needs columns",
    "evaluator/laws/law.py: columns": "each call names columns",
    "evaluator/laws/size_law.py: self.columns": "a column of the law is being looked at",
    "evaluator/laws/size_law.py: _fitted()[by]": "a law is fitted to some recipe",
    "installation/report.py: extra.missing": "extras that lack something alone are told",
    "layer/model/storage.py: sorted(known)": "the sizes of a layer are constants",
    "layer/model/storage.py: sorted(sizes)": "the repr of a text that may be empty",
    "layer/model/storage.py: shapes": "a layer has weights",
    "layer/model/storage.py: dtypes": "a layer has weights",
    "layer/run/recipe.py: every": "a layer has weights",
    "layer/run/recipe.py: plain": "a layer has weights",
    "rank/cp/levenberg_marquardt.py: words": "a sum's operands, and no sentence",
    "rank/verifier/checker.py: several": "the requirement is that there is none",
    "rank/verifier/conversion.py: known": "the choices of a field are constants",
    "rank/verifier/kinds/__init__.py: map(shown, forms)": "it has two views, or a reserved name",
    "rank/schemes/files.py: ends": "a format has ends of names",
    "sweep/grammar/values.py: names": "a table of a sweep has keys",
    "rank/lean/document.py: ends": "a proof has one end at least",
    "rank/lean/document.py: map(str, array.tolist())": "a vector, which may be empty",
}


def templates() -> Iterator[tuple[Path, list[ast.AST], ast.expr]]:
    """Lists in texts with values, each with the nodes around it, outermost first."""
    for path in sorted(ROOT.rglob("*.py")):
        yield from ((path, *found) for found in _lists(ast.parse(path.read_text("utf-8")), []))


def _lists(node: ast.AST, around: list[ast.AST]) -> Iterator[tuple[list[ast.AST], ast.expr]]:
    in_text = any(isinstance(one, ast.JoinedStr) for one in around)
    match node:
        case ast.Call(func=ast.Attribute(attr="join", value=ast.Constant(value=text)), args=[of]):
            if in_text and text in SEPARATORS:
                yield around, of
    for child in ast.iter_child_nodes(node):
        yield from _lists(child, [*around, node])


def has_element(of: ast.expr) -> bool:
    """Whether a list has an element by what it is: a constant, or made of one."""
    match of:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.lstrip("_").isupper()
        case ast.Subscript(value=value):
            return has_element(value)
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return any(
                not isinstance(one, ast.Starred) or has_element(one.value) for one in elements
            )
        case ast.Call(func=ast.Name(id=name), args=args):
            return name in _FULL or (name in _OF and bool(args) and has_element(args[-1]))
    return False


def is_asked(of: ast.expr, around: list[ast.AST]) -> bool:
    """Whether the function asks if it has an element, or the template says what else it is."""
    if isinstance(around[-1], ast.BoolOp):
        return True
    named = (ast.Name, ast.Attribute)
    names = {ast.unparse(one) for one in ast.walk(of) if isinstance(one, named)}
    functions = [one for one in around if isinstance(one, ast.FunctionDef | ast.Lambda)]
    for one in ast.walk(functions[-1] if functions else around[0]):
        if isinstance(one, ast.If | ast.IfExp | ast.While) and names & set(_true(one.test)):
            return True
    return False


def _true(test: ast.expr) -> Iterator[str]:
    """Names whose truth a condition asks for."""
    match test:
        case ast.Name() | ast.Attribute():
            yield ast.unparse(test)
        case ast.NamedExpr(target=ast.Name(id=name)):
            yield name
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _true(operand)
        case ast.BoolOp(values=values):
            for value in values:
                yield from _true(value)


@pytest.mark.slow
def test_no_template_lists_nothing() -> None:
    every = list(templates())
    unknown = [
        f"{path.relative_to(ROOT).as_posix()}: {ast.unparse(of)}"
        for path, around, of in every
        if not has_element(of) and not is_asked(of, around)
    ]
    assert sorted(set(unknown) - WHY.keys()) == []
    assert sorted(WHY.keys() - set(unknown)) == []
    assert len(every) > 50
