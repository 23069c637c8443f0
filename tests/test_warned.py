"""A warning names the user's line, whatever function led to it."""

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from capacity.database import Database, load, parse_rdf, read_rdf
from capacity.database.io.files import pieces
from capacity.errors import AnnotationWarning, MultiValuedWarning

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
