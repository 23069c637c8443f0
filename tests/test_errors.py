"""One exception for whatever a user can mend, held against the source."""

import ast
import builtins
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from capacity import errors
from capacity.database import Database, load, parse_rdf, read_rdf
from capacity.database.io.files import pieces
from capacity.errors import (
    AnnotationWarning,
    CapacityError,
    EndpointError,
    FormatError,
    MultiValuedWarning,
    StorageError,
)
from tests.oracles import ROOT

BUILT_IN = {
    name
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, BaseException)
}
# what may be raised all the same, and why
ALLOWED = {
    ("capacity/database/io/files/compression.py", "EOFError"):
        "a stream says that it ended too early; the function that reads it tells the user",
    ("capacity/optional.py", "AttributeError"):
        "Python asks for it: hasattr and import rest on it",
    ("capacity/cli/process.py", "KeyboardInterrupt"):
        "other signals end a command as Ctrl-C does",
    ("capacity/transformer/activations/following/by_tensor.py", "KeyError"):
        "Python asks for it: a mapping's methods rest on it",
    ("capacity/transformer/activations/records/heads.py", "AttributeError"):
        "Python asks for it: a field without a default has no value in its class",
    ("capacity/rank/interval.py", "KeyboardInterrupt"):
        "Ctrl-C, which a search has kept in its interval",
    ("capacity/rank/search/assembly.py", "AssertionError"):
        "the search joins minors that it has made itself, in this form",
    ("capacity/rank/verifier/procedures/kronecker_form.py", "AssertionError"):
        "a pencil has finitely many roots: no input leads there",
    ("capacity/stores/scratch/keys.py", "RuntimeError"):
        "no input makes hashes of 128 bits under drawn salts collide",
    ("capacity/stores/cluster/dask_counts.py", "RuntimeError"):
        "no input makes hashes of 60 bits collide under four drawn salts",
}  # fmt: skip


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted((ROOT / "capacity").rglob("*.py")):
        yield str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))


def raised() -> Iterator[tuple[str, int, str]]:
    """File, line and name of all exceptions that are raised by name."""
    for name, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise) and node.exc is not None:
                kind = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
                yield name, node.lineno, ast.unparse(kind).removeprefix("builtins.")


@pytest.mark.slow
def test_no_module_raises_a_built_in_exception() -> None:
    found = [
        f"{name}:{line} raises {kind}"
        for name, line, kind in raised()
        if kind in BUILT_IN and (name, kind) not in ALLOWED
    ]
    assert not found


@pytest.mark.slow
def test_no_check_stands_in_an_assert() -> None:
    # python -O removes them
    found = [
        f"{name}:{node.lineno}"
        for name, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert)
    ]
    assert not found


@pytest.mark.slow
def test_every_exception_to_the_rule_is_needed() -> None:
    assert ALLOWED.keys() <= {(name, kind) for name, _, kind in raised()}


KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, Warning)
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_a_capacity_error_that_shows_its_message(kind: type[Exception]) -> None:
    assert issubclass(kind, CapacityError)
    if issubclass(kind, StorageError | EndpointError):
        error = kind("a.ttl", "it is a folder", "Give a file.")
        assert str(error) == "a.ttl: it is a folder. Give a file."
    elif issubclass(kind, FormatError):
        error = kind("a.ttl", "no dot", line=3, advice="Add one.")
        assert str(error) == "a.ttl, line 3: no dot. Add one."
    else:
        # a KeyError would put it in quotes
        assert str(kind("it must hold; it doesn't.")) == "it must hold; it doesn't."


SEVERAL = "<x:a> <x:p> <x:b> .\n<x:a> <x:p> <x:c> .\n"
ANNOTATED = "<x:a> <x:p> <x:b> {| <x:q> 1 |} ."
CALLS: dict[str, tuple[type[Warning], Callable[[Path], object]]] = {
    "load": (MultiValuedWarning, load),
    "load, of a part": (MultiValuedWarning, lambda path: load(path, exclude="x:q")),
    "read_rdf": (MultiValuedWarning, read_rdf),
    "parse_rdf": (MultiValuedWarning, lambda path: parse_rdf(path.read_text(), "ntriples")),
    "from_triples": (
        MultiValuedWarning,
        lambda _: Database.from_triples([("a", "p", "b"), ("a", "p", "c")]),
    ),
    "an annotation": (AnnotationWarning, lambda _: parse_rdf(ANNOTATED, "turtle", multi="keep")),
}


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("what", CALLS)
def test_a_warning_names_the_line_of_the_user(
    what: str, large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if large:
        monkeypatch.setattr(pieces, "LARGE", 0)
    path = tmp_path / "facts.nt"
    path.write_text(SEVERAL + "<x:a> <x:q> <x:b> .\n")
    kind, call = CALLS[what]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(path)
    assert [(w.category, w.filename) for w in caught] == [(kind, __file__)]
