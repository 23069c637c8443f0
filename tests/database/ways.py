"""The ways in which a text is read: as columns by compiled code, or in Python, or fact by fact."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from capacity import kept_code
from capacity.database.io.files import pieces
from capacity.database.io.rdf.lines import large
from capacity.errors import CapacityError

WAYS = ("compiled", "as columns in Python", "fact by fact")


@contextmanager
def read_by(way: str) -> Iterator[None]:
    """Have every text read in one way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "LARGE", 2**62 if way == "fact by fact" else 0)
        patch.setattr(large, "compiled_pays", lambda *_: way == "compiled")
        patch.setattr(kept_code, "pays", lambda *_, **__: way == "compiled")
        yield


def in_each_way(read: Callable[[], Any]) -> list[object]:
    """Read in each way; an error instead of a database is its class and message."""
    results: list[object] = []
    for way in WAYS:
        with read_by(way):
            try:
                results.append(read())
            except CapacityError as error:
                results.append((type(error), str(error)))
    return results
