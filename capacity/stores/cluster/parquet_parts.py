"""Parts of a table, or files, as ids of terms: what the workers of a cluster do with each."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from capacity.database.facts import Database
from capacity.database.io.files.formats import resolve_format
from capacity.database.io.parsing import content_of, parsed
from capacity.database.io.reading import Reading
from capacity.database.io.tables.cells import in_full, marks, reason_against
from capacity.database.io.tables.folders import columns_of_folders
from capacity.database.io.tables.parquet_texts import checked_batches
from capacity.database.terms.nodes import parse_n3
from capacity.errors import SkippedLinesWarning
from capacity.reading_limits import MAX_TERM_BYTES
from capacity.stores.scratch.keys import is_key, key_of, kind_of

if TYPE_CHECKING:
    import pandas as pd

# kinds of terms in the last digit of an id, in base 8
KINDS = 8


# the form of the cells of a file that is loaded
KEYS = "key"


@dataclass(frozen=True)
class Part:
    """A group of rows of a Parquet file, or a whole file of any format.

    Attributes
    ----------
    path : str
        The file, as the workers see it.
    group : int
        Number of the group.
    columns : tuple of str
        Columns of subject, predicate and object.
    file : int or None
        Number of the file, if there are several: blank nodes of two files are two.
    variables : bool
        Whether the columns name variables of SPARQL, so that the cells may be short forms of terms.
    max_term_bytes : int
        Most bytes of a term.
    reading : Reading or None
        How a whole file is loaded; None for a group of rows.
    """

    path: str
    group: int = 0
    columns: tuple[str, ...] = ()
    file: int | None = None
    variables: bool = False
    max_term_bytes: int = MAX_TERM_BYTES
    reading: Reading | None = None


@dataclass(frozen=True)
class Survey:
    """The form of the cells of a part, and what is wrong with them.

    Attributes
    ----------
    missing, long : bool
        Whether a cell is missing, or longer than a term may be.
    some_iri, some_plain : bool
        Marks of the cells' form (`capacity.database.io.tables.cells.marks`).
    wrong : str or None
        A cell that is no term of N-Triples.
    literal_predicate : bool
        Whether a predicate is a literal, if the cells are terms.
    """

    missing: bool
    long: bool
    some_iri: bool
    some_plain: bool
    wrong: str | None
    literal_predicate: bool


def survey(part: Part) -> Survey:
    """Look at all cells of a part."""
    columns = _columns(part)
    texts = dict.fromkeys(chain.from_iterable(texts for texts, _ in columns))
    missing = any((indices < 0).any() for _, indices in columns)
    most = part.max_term_bytes
    long = any(len(text) * 4 > most < len(text.encode()) for text in texts)
    forms = _forms(part, texts)
    wrong = next((cell for cell, text in forms.items() if reason_against(text)), None)
    full = in_full if part.variables else str
    literal_predicate = any(full(text).startswith('"') for text in columns[1][0])
    return Survey(missing, long, *marks(texts), wrong, literal_predicate)


def _forms(part: Part, texts: Iterable[str]) -> dict[str, str]:
    """Cells that aren't plainly a term, each with its form in full."""
    return {text: in_full(text) if part.variables else text for text in texts if not is_key(text)}


def facts_of(part: Part, form: str, salt: str) -> pd.DataFrame:
    """Read the facts of a part as ids, shape (n_rows, 3)."""
    return named_facts([ids_of(_keys(part, form, texts), salt)[at] for texts, at in _columns(part)])


def named_facts(columns: Sequence[NDArray[np.int64]]) -> pd.DataFrame:
    """Return ids of subjects, predicates and objects as a dataframe."""
    import pandas as pd

    return pd.DataFrame(dict(zip("spo", columns, strict=True)))


def terms_of(part: Part, form: str, salt: str) -> pd.DataFrame:
    """Read the terms of a part, each once, with their ids."""
    found = chain.from_iterable(_keys(part, form, texts) for texts, _ in _columns(part))
    return named_terms(list(dict.fromkeys(found)), salt)


def named_terms(keys: list[str], salt: str) -> pd.DataFrame:
    """Return keys and their ids."""
    import pandas as pd

    return pd.DataFrame({"id": ids_of(keys, salt), "key": pd.Series(keys, dtype="str")})


def ids_of(keys: list[str], salt: str) -> NDArray[np.int64]:
    """Hash keys to ids, which have the kind of the term in their last digit."""
    from pandas.util import hash_array

    if not keys:
        return np.empty(0, np.int64)
    hashes = hash_array(np.array(keys, object), hash_key=salt, categorize=False)
    # without a sign bit, so that no library makes floating-point numbers of them
    positive = (hashes >> np.uint64(1)).astype(np.int64)
    return positive - positive % KINDS + np.array([kind_of(key) for key in keys])


def _columns(part: Part) -> list[tuple[list[str], NDArray[np.int64]]]:
    """Return the different cells of each column, and which is in each row; -1 if none is."""
    import pyarrow as pa

    # raises an error that names the file, if this worker doesn't see it
    Path(part.path).stat()
    if part.reading is not None:
        # blank nodes have the same names each time
        db = _loaded(part.path, part.reading)
        keys = [key_of(token, part.file) for token in db.tokens]
        return [(keys, db.token_tuples[:, column].astype(np.int64)) for column in range(3)]
    of_folders = columns_of_folders(part.path)
    batches = checked_batches(
        part.path, list(part.columns), group=part.group, of_folders=of_folders
    )
    table = pa.Table.from_batches(list(batches)).combine_chunks()
    found: list[tuple[list[str], Any]] = []
    for column in table.columns:
        cells = column.cast(pa.large_string()).combine_chunks().dictionary_encode()
        found.append((cells.dictionary.to_pylist(), cells.indices.fill_null(-1).to_numpy()))
    return found


def _loaded(path: str, reading: Reading) -> Database:
    content = content_of(path, reading)
    format = resolve_format(content, reading.format)
    with warnings.catch_warnings():
        # `skipped_in` tells it where it is seen
        warnings.simplefilter("ignore", SkippedLinesWarning)
        return parsed(content, format, reading, multi="keep")


def skipped_in(part: Part) -> list[tuple[int, str]]:
    """Return the broken lines of a file that are omitted."""
    if part.reading is None:
        return []
    source = _loaded(part.path, part.reading).source
    return [] if source is None else list(source.skipped)


def _keys(part: Part, form: str, texts: list[str]) -> list[str]:
    if form == KEYS:
        return texts
    if form == "label":
        return [f"={text}" for text in texts]
    forms = _forms(part, texts)
    terms = parse_n3(dict.fromkeys(forms.values()))
    return [text if text not in forms else key_of(terms[forms[text]], part.file) for text in texts]
