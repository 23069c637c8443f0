"""Several files of facts as one database: lists, folders, patterns and open files.

Each file is read on its own, with a format of its own, and the facts are united. A blank node is
local to its file: if two files use one name, all blank nodes are renamed ``b0``, ``b1``, ... Of the
folders in a folder those are read that are parts of a table, such as ``relation=knows``.
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, TypeGuard

import numpy as np

from capacity.database.facts import Database
from capacity.database.io.files.formats import format_of_name
from capacity.database.policy import MultiPolicy
from capacity.database.source import Source
from capacity.database.terms.term import Term, blank_names, rename_blank_nodes
from capacity.errors import DatabaseFormatError, InvalidTypeError, MultiValuedError
from capacity.safe_files import advice_on_name

Name: TypeAlias = str | os.PathLike[str]
# of those that can be iterated over, lists, tuples and iterators
Sources: TypeAlias = Name | BinaryIO | Iterable[Name | BinaryIO]
# why an entry of a folder isn't read, in the order of a message
_FOLDER, _IRREGULAR = "Folders", "Not a regular file"
_NAMELESS, _HIDDEN = "The name shows no format", "The name begins with a dot"
_REASONS = (_FOLDER, _IRREGULAR, _NAMELESS, _HIDDEN)


def is_one(path: object) -> TypeGuard[Name | BinaryIO]:
    """Return whether a path names one file, or is an open one."""
    if not isinstance(path, str | os.PathLike):
        # an open file is an iterator, too
        return hasattr(path, "read") or not isinstance(path, list | tuple | Iterator)
    name = os.fspath(path)
    return not (isinstance(name, str) and (_is_folder(name) or _is_pattern(name)))


def _is_folder(name: str) -> bool:
    try:
        # an empty name would be that of the current folder
        return name != "" and Path(name).is_dir()
    except (OSError, TypeError, ValueError):
        return False


def _is_pattern(name: str) -> bool:
    try:
        return glob.has_magic(name) and not os.path.lexists(name)
    except (OSError, TypeError, ValueError):
        return False


def load_several(
    paths: Any,
    load_one: Callable[[Any], Database],
    *,
    format: str | None = None,
    multi: MultiPolicy | None = None,
) -> Database:
    """Read the files of a folder, a pattern or a list, and unite their facts.

    Parameters
    ----------
    paths : path, or list or iterator of paths and binary files
        Folder, pattern, or files, folders and patterns.
    load_one : callable
        Function that reads one file under the policy ``keep``.
    format : str, optional
        Format of all files.
    multi : MultiPolicy, optional
        Policy for multi-valued pairs of the united facts.

    Raises
    ------
    DatabaseFormatError
        If there is no file, or one can't be read, with its name, or their facts have several
        arities.
    InvalidTypeError
        For an element of a list that is neither a path nor an open file.
    MultiValuedError
        Under the policy ``error``, or if a policy leaves no fact.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from capacity.database import load
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("Astrid,born_in,Singapore")
    ...     _ = Path(folder, "b.nt").write_text("<x:Bernard> <x:born_in> <x:Malaysia> .")
    ...     db = load_several(folder, lambda path: load(path, multi="keep"))
    >>> db.n_triples, db.source.format, len(db.source.parts)
    (2, 'csv, ntriples', 2)
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    files, notes = files_of(given, format)
    parts = [load_one(file) for file in files]
    if len({db.arity for db in parts}) > 1:
        first, other = parts[0], next(db for db in parts if db.arity != parts[0].arity)
        raise DatabaseFormatError(
            _name(other), f"its facts have {other.arity} columns, and those of {_name(first)} "
            f"{first.arity}", advice="Read them apart.",
        )  # fmt: skip
    name = name_of_all(given, len(files))
    sources = [db.source for db in parts if db.source is not None]
    # each as sha256sum prints it, in an order that doesn't depend on the order of the files
    digest = hashlib.sha256("".join(sorted(f"{one.sha256}\n" for one in sources)).encode())
    formats = ", ".join(sorted({one.format for one in sources}))
    said = tuple(f"{one.name}: {note}" for one in sources for note in one.notes)
    others = sum(one.in_other_graphs for one in sources)
    source = Source(
        name, digest.hexdigest(), formats, (*notes, *said), others, parts=tuple(sources)
    )
    try:
        return united(parts, multi=multi, source=source)
    except MultiValuedError as error:
        raise MultiValuedError(f"{name}: {error}") from None


def _name(db: Database) -> str:
    return "a file" if db.source is None else db.source.name


def name_of_all(given: Sequence[object], n_files: int) -> str:
    """Name the files of a folder, a pattern or a list, with their number."""
    names = [
        Path(one).name or os.fspath(one)
        if isinstance(one, str | os.PathLike)
        else _name_of_file(one)
        for one in given
    ]
    return f"{', '.join(names):.100} ({n_files} file{'s' * (n_files > 1)})"


def _name_of_file(file: object) -> str:
    name = getattr(file, "name", None)
    return Path(name).name if isinstance(name, str) else "the open file"


def files_of(given: Iterable[Any], format: str | None) -> tuple[list[Any], tuple[str, ...]]:
    """List the files to read, each once, and those of a folder that aren't read.

    Raises
    ------
    DatabaseFormatError
        If there is no file.
    InvalidTypeError
        For an element that is neither a path nor an open file.
    """
    files: list[Any] = []
    notes: list[str] = []
    for one in given:
        if not isinstance(one, str | os.PathLike):
            if not hasattr(one, "read"):
                raise InvalidTypeError(
                    "The files of a list must be named by a str or a path, or be open; got "
                    f"{type(one).__name__}. For rows use Database.from_triples."
                )
            files.append(one)
            continue
        name = os.fspath(one)
        if _is_folder(name):
            found, note = _in_folder(name, format)
            notes += [note] if note else []
        elif _is_pattern(name):
            found = sorted(p for p in _matches(name) if not Path(p).is_dir())
            if not found:
                raise DatabaseFormatError(
                    name,
                    "no such file, and as a pattern it matches none",
                    advice=advice_on_name(name, "Check the name; ** denotes folders in folders."),
                )
        else:
            found = [one]
        files += found
    if not files:
        raise DatabaseFormatError(
            "the list of files", "it is empty", advice="Name a file at least."
        )
    # a file that two patterns match, or that has two names, is read once
    once: dict[object, Any] = {}
    for one in files:
        once.setdefault(_identity(one), one)
    return list(once.values()), tuple(notes)


def _identity(file: Any) -> object:
    try:
        return os.path.realpath(file) if isinstance(file, str | os.PathLike) else id(file)
    except (OSError, ValueError):
        # reading it tells what is wrong
        return file


def _matches(pattern: str) -> list[str]:
    # Path.glob takes no absolute pattern
    return glob.glob(pattern, recursive=True)  # noqa: PTH207


def _in_folder(name: str, format: str | None) -> tuple[list[str], str]:
    """List the files of a folder that are read, and those that aren't."""
    try:
        entries = list(_entries(Path(name)))
    except OSError as error:
        raise DatabaseFormatError(name, f"{error.strerror}", advice="Check the folder.") from None
    of = Path(name).name or name
    taken: list[str] = []
    others: dict[str, list[str]] = {}
    for path in entries:
        if (why := _unread(path, format)) is None:
            taken.append(os.fspath(path))
        else:
            others.setdefault(why, []).append(path.name)
    listed = " ".join(
        f"{why}: {str(len(others[why])) if why == _HIDDEN else ', '.join(others[why]):.200}."
        for why in _REASONS
        if why in others
    )
    if not taken:
        raise DatabaseFormatError(
            name,
            "it is a folder without a file whose name ends as a known format's does",
            advice=f"Pass `format`, or a pattern, such as {of}/*.txt. {listed}".rstrip(),
        )
    note = (
        f"Of {len(entries)} files and folders in {of} {len(entries) - len(taken)} aren't read. "
        f"{listed}"
    )
    return taken, note if others else ""


def _entries(folder: Path) -> Iterator[Path]:
    """Yield what is in a folder, and in those that are the parts of one table, as of Hive."""
    for path in sorted(folder.iterdir()):
        # a link may lead back to where it is
        is_part = "=" in path.name and not path.name.startswith(".") and not path.is_symlink()
        if is_part and path.is_dir():
            yield from _entries(path)
        else:
            yield path


def _unread(path: Path, format: str | None) -> str | None:
    """Return why an entry of a folder isn't read; None if it is."""
    if path.name.startswith("."):
        return _HIDDEN
    if path.is_dir():
        return _FOLDER
    if not path.is_file():
        return _IRREGULAR
    return None if format or format_of_name(path.name) else _NAMELESS


def united(
    parts: Sequence[Database], *, multi: MultiPolicy | None = None, source: Source | None = None
) -> Database:
    """Unite the facts of databases of one arity.

    Parameters
    ----------
    parts : sequence of Database
        Databases, at least one; blank nodes of two of them are two.
    multi : MultiPolicy, optional
        Policy for multi-valued pairs.
    source : Source, optional
        Their files.

    Raises
    ------
    MultiValuedError
        Under the policy ``error``, or if a policy leaves no fact.
    """
    taken = Counter(name for db in parts for name in blank_names(db.tokens))
    apart = any(n > 1 for n in taken.values())
    ids: dict[Term, int] = {}
    rows: list[Any] = []
    n_blank = 0
    prefixes: dict[str, str] = {}
    for db in parts:
        tokens: Sequence[Term] = db.tokens
        if apart:
            names = blank_names(tokens)
            fresh = {name: f"b{n_blank + i}" for i, name in enumerate(names)}
            n_blank += len(names)
            tokens = [rename_blank_nodes(token, fresh) for token in tokens]
        numbers = np.array([ids.setdefault(token, len(ids)) for token in tokens], dtype=np.int64)
        rows.append(numbers[db.token_tuples] if db.n_facts else db.token_tuples)
        prefixes = {**db.prefixes, **prefixes}
    return Database.from_ids(
        list(ids),
        np.concatenate(rows),
        arity=parts[0].arity,
        multi=multi,
        prefixes=prefixes,
        source=source,
        allow_empty=True,
    )
