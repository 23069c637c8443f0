"""Terms as columns: what a tuple of `Term` holds, in a fifth of the memory.

A term is made when it is asked for. The columns are its kind, its text (Arrow) and its *tail*, the
datatype or the language of a literal, of which a file has few.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from capacity.database.terms.term import Kind, Term, unchecked

if TYPE_CHECKING:
    import pyarrow as pa


# bytes of texts from which compiled code pays to sort them if it is kept, and if it isn't: Arrow
# takes 30 ns a byte longer, and the compilation three seconds
KEPT, UNKEPT = 2**24, 2**27


def compute() -> Any:
    """Return ``pyarrow.compute``, whose functions no checker of types knows.

    They are made when it is imported, which takes longer than most small files do.
    """
    import pyarrow.compute

    return pyarrow.compute


def texts_of(starts: NDArray[np.int64], data: NDArray[np.uint8]) -> pa.LargeStringArray:
    """Make texts of their bytes and where each starts, without a copy.

    Parameters
    ----------
    starts : ndarray of int64, shape (n + 1,)
        Start of each text in `data`, and the end of the last one.
    data : ndarray of uint8
        Bytes of all texts in UTF-8, one after the other.
    """
    import pyarrow as pa

    buffers = pa.py_buffer(starts), pa.py_buffer(data)
    return pa.LargeStringArray.from_buffers(len(starts) - 1, *buffers)


def joined(texts: Sequence[bytes]) -> pa.LargeStringArray:
    """Make an array of texts in UTF-8, in a fifth of the time that Arrow's own function takes."""
    starts = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=starts[1:])
    return texts_of(starts, np.frombuffer(b"".join(texts), np.uint8))


def order_of(texts: pa.LargeStringArray, ties: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the order of texts by their bytes, and of equal ones by a number.

    Parameters
    ----------
    texts : pyarrow.LargeStringArray, shape (n,)
        The texts.
    ties : ndarray of int32, shape (n,)
        Numbers from 0.

    Returns
    -------
    ndarray of int64, shape (n,)
        Indices of the texts, ascending by (text, number).

    Examples
    --------
    >>> import pyarrow as pa
    >>> texts = pa.array(["bc", "a", "bc"], pa.large_string())
    >>> order_of(texts, np.array([1, 0, 0], np.int32)).tolist()
    [1, 2, 0]
    """
    source = Path(__file__).with_name("text_order.py")
    # which nothing else here needs
    from capacity import kept_code

    if kept_code.pays(texts.nbytes, source, "_sort", kept=KEPT, unkept=UNKEPT):
        # numba takes longer to import than a few texts to sort
        from capacity.database.terms.text_order import sorted_order

        return sorted_order(*_bytes_of(texts), ties)
    pc = compute()
    order = np.asarray(pc.sort_indices(texts)).astype(np.int64)
    if len(order) and ties.any():
        ordered = texts.take(order)
        new = np.asarray(pc.not_equal(ordered[1:], ordered[:-1]))
        places = np.concatenate([[0], np.cumsum(new)]) * (int(ties.max()) + 1) + ties[order]
        order = order[np.argsort(places, kind="stable")]
    return order


def _bytes_of(texts: pa.LargeStringArray) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Starts of texts, with the end of the last one, and their bytes."""
    _, starts, data = texts.buffers()
    at = slice(texts.offset, texts.offset + len(texts) + 1)
    # there is no buffer for texts without bytes
    return np.frombuffer(starts, np.int64)[at], np.frombuffer(data or b"", np.uint8)


# in the order of their names, which is that of terms
KINDS: tuple[Kind, ...] = ("blank", "iri", "label", "literal", "set", "triple")
CODES = {kind: code for code, kind in enumerate(KINDS)}
# code of what is no term: the name of the default graph
NO_GRAPH = 7
# terms that are made at once
_PIECE = 2**16
# text that JSON writes as it is
_NOT_PLAIN = r"[^ !#-\[\]-~]"


@dataclass(frozen=True, eq=False, repr=False)
class TermColumns(Sequence[Term]):
    """Distinct terms in ascending order.

    Attributes
    ----------
    kinds : ndarray of uint8, shape (n,)
        Kind of each term, as an index into `KINDS`.
    texts : pyarrow.LargeStringArray
        Text of each term.
    tails : ndarray of int32, shape (n,)
        Datatype and language of each term, as an index into `pairs`.
    pairs : tuple of (str, str)
        Datatypes and languages, the first of which are empty.

    Examples
    --------
    >>> import pyarrow as pa
    >>> kinds, texts = np.array([1, 3], np.uint8), pa.array(["x:a", "1"], pa.large_string())
    >>> pairs = (("", ""), ("http://www.w3.org/2001/XMLSchema#integer", ""))
    >>> terms = TermColumns(kinds, texts, np.array([0, 1], np.int32), pairs)
    >>> terms[0], terms[1].datatype[-7:], len(terms)
    (Term(kind='iri', text='x:a', datatype='', language=''), 'integer', 2)
    """

    kinds: NDArray[np.uint8]
    texts: pa.LargeStringArray
    tails: NDArray[np.int32]
    pairs: tuple[tuple[str, str], ...]

    def __len__(self) -> int:
        return len(self.kinds)

    @overload
    def __getitem__(self, at: int) -> Term: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Term, ...]: ...
    def __getitem__(self, at: int | slice) -> Term | tuple[Term, ...]:
        if isinstance(at, slice):
            return tuple(self.taken(np.arange(len(self))[at]))
        kind, text = KINDS[self.kinds[at]], self.texts[int(at)].as_py()
        return unchecked(kind, text, *self.pairs[self.tails[at]])

    def __iter__(self) -> Iterator[Term]:
        for start in range(0, len(self), _PIECE):
            part = slice(start, start + _PIECE)
            columns = self.kinds[part].tolist(), self.texts[part].to_pylist()
            for kind, text, tail in zip(*columns, self.tails[part].tolist(), strict=True):
                yield unchecked(KINDS[kind], text, *self.pairs[tail])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TermColumns):
            return tuple(self) == other if isinstance(other, tuple) else NotImplemented
        if not np.array_equal(self.kinds, other.kinds) or not self.texts.equals(other.texts):
            return False
        if self.pairs == other.pairs:
            return np.array_equal(self.tails, other.tails)
        return all(
            self.pairs[a] == other.pairs[b]
            for a, b in np.unique(np.stack([self.tails, other.tails], 1), axis=0).tolist()
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"TermColumns({len(self)} terms)"

    def taken(self, at: NDArray[Any]) -> TermColumns:
        """Keep the terms at some ascending indices, or where a mask is true."""
        at = np.flatnonzero(at) if at.dtype == bool else at
        return TermColumns(self.kinds[at], self.texts.take(at), self.tails[at], self.pairs)

    def longer_than(self, most: int) -> str | None:
        """Return the first text that takes more than some bytes in UTF-8; None if none does."""
        long = np.asarray(compute().binary_length(self.texts)) > most
        return self.texts[int(long.argmax())].as_py() if long.any() else None

    def json_lines(self) -> Iterator[bytes]:
        """Yield pieces of text with a line for each term: the JSON array of its four fields."""
        import pyarrow as pa

        pc = compute()
        heads = pa.array([f'["{kind}", "' for kind in KINDS], pa.large_string())
        ends = [f'", {json.dumps(one)}, {json.dumps(two)}]\n' for one, two in self.pairs]
        for start in range(0, len(self), _PIECE):
            part = slice(start, start + _PIECE)
            texts = self.texts[part]
            special = pc.match_substring_regex(texts, _NOT_PLAIN)
            if pc.any(special).as_py():
                escaped = [json.dumps(text)[1:-1] for text in texts.filter(special).to_pylist()]
                texts = pc.replace_with_mask(texts, special, pa.array(escaped, pa.large_string()))
            lines = pc.binary_join_element_wise(
                heads.take(pa.array(self.kinds[part])),
                texts,
                pa.array(ends, pa.large_string()).take(pa.array(self.tails[part])),
                pa.scalar("", pa.large_string()),
            )
            yield lines.buffers()[2].to_pybytes()


@dataclass
class UnsortedTerms:
    """Terms in any order, of which several may be the same.

    Attributes
    ----------
    kinds, texts, tails, pairs
        As `TermColumns` has them; several pairs may be the same, and `kinds` may have numbers for
        what is no term.
    """

    kinds: NDArray[np.uint8]
    texts: pa.LargeStringArray
    tails: NDArray[np.int32]
    pairs: Sequence[tuple[str, str]]

    def in_order(self, used: NDArray[np.bool_]) -> tuple[TermColumns, NDArray[np.int32]]:
        """Sort the terms in use; the columns are emptied meanwhile, to free memory.

        Parameters
        ----------
        used : ndarray of bool, shape (n,)
            Terms to keep.

        Returns
        -------
        terms : TermColumns
            Distinct and ascending.
        ranks : ndarray of int32, shape (n,)
            Index of each given term in `terms`; -1 for those that are omitted.
        """
        import pyarrow as pa

        # which large files alone need

        pc = compute()
        distinct = sorted({("", ""), *self.pairs})
        number = {pair: i for i, pair in enumerate(distinct)}
        tails = np.array([number[pair] for pair in self.pairs], np.int32)[self.tails]
        kinds, texts, kept = self.kinds, self.texts, np.flatnonzero(used)
        self.kinds, self.texts, self.tails = kinds[:0], texts[:0], tails[:0]
        if len(kept) < len(used):
            kinds, texts, tails = kinds[kept], texts.take(kept), tails[kept]
        order = order_of(texts, tails)
        order = order[np.argsort(kinds[order], kind="stable")]
        kinds, texts, tails = kinds[order], texts.take(pa.array(order)), tails[order]
        new = np.ones(len(order), bool)
        if len(order) > 1:
            same = pc.equal(texts[1:], texts[:-1]).to_numpy(zero_copy_only=False)
            new[1:] = ~same | (kinds[1:] != kinds[:-1]) | (tails[1:] != tails[:-1])
        ranks = np.full(len(used), -1, np.int32)
        ranks[kept[order]] = np.cumsum(new, dtype=np.int32) - 1
        terms = TermColumns(kinds, texts, tails, tuple(distinct))
        return (terms if new.all() else terms.taken(new)), ranks


def json_lines(tokens: Iterable[Term]) -> Iterator[bytes]:
    """Yield pieces of text with a line for each term: the JSON array of its four fields."""
    if isinstance(tokens, TermColumns):
        yield from tokens.json_lines()
    else:
        for token in tokens:
            yield json.dumps(token).encode() + b"\n"


def longer_than(most: int, tokens: Iterable[Term]) -> str | None:
    """Return the first text of a term that takes more than some bytes; None if none does."""
    if isinstance(tokens, TermColumns):
        return tokens.longer_than(most)
    for token in tokens:
        # a character takes four bytes at most
        if 4 * len(token.text) > most < len(token.text.encode("utf-8", "replace")):
            return token.text
    return None
