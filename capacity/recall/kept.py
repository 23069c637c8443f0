"""A file of answers, so that work that was interrupted is continued and none is done twice.

It is JSON Lines: one line per query, with a hash of the model's weights, of the method and of the
tokens that were asked. So answers of another model, or of other templates, may be in the same file.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from pathlib import Path
from typing import Any

from capacity.errors import FormatError
from capacity.recall.scores.answered import Answered
from capacity.recall.sentences import Query
from capacity.safe_files import read_file, require_replaceable, write_whole

MAX_BYTES = 2**32
# a kill costs the work of a minute at most
SECONDS = 60.0


class Kept:
    """Answers of a model that are in a file, and those that are added.

    Parameters
    ----------
    path : path, optional
        The file, which may be missing. Without a path nothing is kept.
    model : PreTrainedModel
        The model.
    method : str
        How answers are scored.

    Raises
    ------
    FormatError
        If a line isn't an answer.
    StorageError
        If the file can't be read or replaced.
    """

    def __init__(self, path: str | os.PathLike[str] | None, model: Any, method: str) -> None:
        self._path = None if path is None else Path(path)
        self._lines: dict[str, str] = {}
        self._saved = time.monotonic()
        self._is_new = False
        if self._path is None:
            return
        require_replaceable(self._path)
        self._of = hashlib.sha256(f"{_sha256_of(model)} {method}".encode())
        if self._path.exists():
            text = read_file(self._path, max_bytes=MAX_BYTES).decode("utf-8", "replace")
            for number, line in enumerate(text.splitlines(), start=1):
                self._lines[_read(self._path, number, line)[0]] = line

    def find(self, query: Query, *, best_only: bool) -> Answered | None:
        """Return the answer to a query, if the file has it.

        Raises
        ------
        FormatError
            If it is the answer to another query.
        """
        if self._path is None:
            return None
        line = self._lines.get(self._key(query, best_only))
        if line is None:
            return None
        found = _read(self._path, None, line)[1]
        if (len(found.scores), len(found.greedy)) != (len(query.sentences), len(query.right)):
            raise _no_answer(self._path, None)
        return found

    def add(self, query: Query, answered: Answered, *, best_only: bool) -> None:
        """Add an answer, and write the file once a minute."""
        if self._path is None:
            return
        key = self._key(query, best_only)
        scores = [None if math.isnan(score) else score for score in answered.scores]
        said = {"query": key, "scores": scores, "greedy": answered.greedy, "n": answered.n_scored}
        self._lines[key] = json.dumps(said)
        self._is_new = True
        if time.monotonic() - self._saved > SECONDS:
            self.save()

    def save(self) -> None:
        """Write the file, whole or not at all, if answers were added."""
        if self._path is not None and self._is_new:
            write_whole(self._path, "".join(f"{line}\n" for line in self._lines.values()).encode())
            self._saved, self._is_new = time.monotonic(), False

    def _key(self, query: Query, best_only: bool) -> str:
        hashed = self._of.copy()
        hashed.update(json.dumps([query.sentences, query.right, query.source, best_only]).encode())
        return hashed.hexdigest()


def _read(path: Path, number: int | None, line: str) -> tuple[str, Answered]:
    try:
        said = json.loads(line)
        scores = tuple(math.nan if one is None else float(one) for one in said["scores"])
        greedy = tuple(tuple(int(token) for token in row) for row in said["greedy"])
        return str(said["query"]), Answered(scores, greedy, int(said["n"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _no_answer(path, number) from None


def _no_answer(path: Path, number: int | None) -> FormatError:
    return FormatError(
        str(path),
        "it is no answer that `recall` has kept",
        line=number,
        advice="Name a new file, or one that `recall` wrote.",
    )


def _sha256_of(model: Any) -> str:
    """Hash a model's config and weights."""
    import torch

    hashed = hashlib.sha256(type(model).__name__.encode())
    # what a config says of sliding windows, norms and the like is in no weight
    settings = {k: v for k, v in model.config.to_dict().items() if not k.startswith("_")}
    hashed.update(json.dumps(settings, sort_keys=True, default=str).encode())
    for name, tensor in sorted(model.state_dict().items()):
        hashed.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        hashed.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return hashed.hexdigest()
