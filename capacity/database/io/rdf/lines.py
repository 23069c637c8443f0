"""Facts of N-Triples and N-Quads as columns: plain lines by compiled code, others by the parser."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyoxigraph as ox
from numpy.typing import NDArray

from capacity.database.io.numbering import Numbering
from capacity.database.io.rdf.guards import refuse_hostile_turtle
from capacity.database.io.rdf.scanning import KIND_BITS, NO_GRAPH, Tails, scan
from capacity.database.nodes import term_from_pyoxigraph
from capacity.database.term_columns import CODES, UnsortedTerms
from capacity.database.terms import XSD_STRING, Ids, Term

_LANGUAGES = re.compile(r"rdf-syntax-ns#(langString|dirLangString)>")


class UnsuitedError(Exception):
    """Raised for a text that must be left to the parser as a whole, because of an error or else."""


@dataclass(frozen=True)
class Found:
    """Terms in order of first use, which may repeat, and facts as their numbers.

    Attributes
    ----------
    terms : UnsortedTerms
        The terms, and of kind `NO_GRAPH` the name of the default graph.
    rows : list of ndarray of int32, shapes (n_i, 3)
        Subject, predicate and object of each triple, in the order of the file.
    graphs : list of ndarray of int32, shapes (n_i,)
        Graph of each triple, which is of kind `NO_GRAPH` for the default graph; empty for triples.
    """

    terms: UnsortedTerms
    rows: list[NDArray[np.int32]]
    graphs: list[NDArray[np.int32]]


class LineReader:
    """Reader of lines, to which a text is fed in pieces.

    Parameters
    ----------
    width : int
        3 for N-Triples, 4 for N-Quads.

    Attributes
    ----------
    n_rows : int
        Number of facts so far.
    """

    def __init__(self, width: int) -> None:
        self._width, self._format = width, _FORMATS[width]
        self._numbering, self._tails = Numbering(), Tails()
        # terms of lines that aren't plain, whose numbers are -1, -2, ...
        self._strange = Ids()
        self._rows: list[NDArray[np.int32]] = []
        self.n_rows = 0
        # for lines between those: a line of the parser's must not go on in one of these
        self._between = f"<x:{uuid.uuid4().hex}>"

    def feed(self, lines: bytes | memoryview) -> None:
        """Read whole lines.

        Raises
        ------
        UnsuitedError
            If a line isn't of the format.
        """
        data = np.frombuffer(lines, np.uint8)
        most = int(np.count_nonzero(data == ord("\n"))) + 1
        size = most * self._width
        begins, ends, codes = (np.empty(size, np.int32) for _ in range(3))
        hashes, others = np.empty(size, np.uint64), np.empty((most, 3), np.int64)
        tails = self._tails
        plain, strange = scan(data, self._width, begins, ends, codes, hashes, others, tails.slots,
                              tails.starts, tails.pool, tails.counts)  # fmt: skip
        n = plain * self._width
        rows = self._numbering.number(data, begins[:n], ends[:n], codes[:n], hashes[:n])
        rows = rows.reshape(-1, self._width)
        if strange:
            at, others = self._parsed(lines, others[:strange])
            rows = np.insert(rows, at, others, axis=0)
        self._rows.append(rows)
        self.n_rows += len(rows)

    def _parsed(
        self, lines: bytes | memoryview, others: NDArray[np.int64]
    ) -> tuple[list[int], NDArray[np.int32]]:
        """Parse lines that aren't plain; return how many plain ones are before each fact of them.

        Raises
        ------
        UnsuitedError
            If the parser refuses one, or there is what the parser must see as a whole.
        """
        between = f"{self._between} {self._between} {self._between} .\n".encode()
        parts: list[bytes] = []
        for begin, end, _ in others.tolist():
            line = bytes(lines[begin:end])
            parts += [line, b"" if line.endswith(b"\n") else b"\n", between]
        which, at, found = 0, [], []
        try:
            text = b"".join(parts)
            refuse_hostile_turtle("", text)
            for quad in ox.parse(text, format=self._format):
                if quad.subject.value == self._between[1:-1]:
                    which += 1
                    continue
                if isinstance(quad.object, ox.Triple):
                    raise UnsuitedError
                terms: list[object] = [quad.subject, quad.predicate, quad.object]
                row = [-1 - self._strange[term_from_pyoxigraph(term)] for term in terms]
                if self._width == 4:
                    row.append(-1 - self._strange[_graph_name(quad.graph_name)])
                at.append(int(others[which, 2]))
                found.append(row)
        except (SyntaxError, ValueError, MemoryError) as error:
            raise UnsuitedError from error
        return at, np.array(found, np.int32).reshape(-1, self._width)

    def found(self) -> Found:
        """Return all terms and facts.

        Raises
        ------
        UnsuitedError
            If a literal's datatype is that of literals with a language.
        """
        numbering, codes = self._numbering, self._numbering.codes
        tails = self._tails.texts()
        if any(map(_LANGUAGES.search, tails)):
            raise UnsuitedError
        n, strange = numbering.n, list(self._strange)
        pairs = [_pair(tail) for tail in tails]
        number = {pair: i for i, pair in enumerate(pairs)}
        for term in strange:
            if (term.datatype, term.language) not in number:
                number[term.datatype, term.language] = len(pairs)
                pairs.append((term.datatype, term.language))
        texts = numbering.texts()
        if strange:
            texts = pa.concat_arrays([texts, pa.array([t.text for t in strange], texts.type)])
            for rows in self._rows:
                rows[rows < 0] = n - 1 - rows[rows < 0]
        kinds = [NO_GRAPH if t == _DEFAULT else CODES[t.kind] for t in strange]
        own = [number[t.datatype, t.language] for t in strange]
        terms = UnsortedTerms(
            np.append(codes & 2**KIND_BITS - 1, kinds).astype(np.uint8),
            texts,
            np.append(codes >> KIND_BITS, own).astype(np.int32),
            pairs,
        )
        return Found(
            terms,
            [rows[:, :3] for rows in self._rows],
            [rows[:, 3] for rows in self._rows] if self._width == 4 else [],
        )


_FORMATS = {3: ox.RdfFormat.N_TRIPLES, 4: ox.RdfFormat.N_QUADS}
# stands for the default graph, whose name is no term
_DEFAULT = Term("set", "")


def _graph_name(node: object) -> Term:
    return _DEFAULT if isinstance(node, ox.DefaultGraph) else term_from_pyoxigraph(node)


def _pair(tail: str) -> tuple[str, str]:
    """Return the datatype and the language that stand behind a literal."""
    if tail.startswith("@"):
        return "", tail[1:].lower()
    datatype = tail[3:-1]
    return ("" if datatype == XSD_STRING else datatype), ""
