"""Read RDF/XML as lines of N-Triples, within the limits of a file.

expat reads the XML, which expands entities as they are declared and fetches nothing; what it must
not be given, `guards.xml` refuses before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from xml.parsers import expat

import pyoxigraph as ox

from capacity.database.io.files.content import Content, refuse_excess
from capacity.database.io.files.foreign import foreign_text
from capacity.database.io.rdf.guards.xml import (
    ELEMENTS_A_TRIPLE,
    FREE_EXPANSION,
    MAX_ATTRIBUTES,
    MAX_DEPTH,
    MAX_EXPANSION,
    before_expat,
    refused,
)
from capacity.database.io.rdf.rdfxml.elements import Elements
from capacity.database.io.rdf.rdfxml.names import ForbiddenError, LongTermError, checked_iri
from capacity.errors import DatabaseFormatError

# expat is given pieces of at least and at most these bytes, and keeps texts until they are as long
_PIECES, _TEXT = (2**16, 2**20), 2**16


class RdfXmlLines:
    """A document of RDF/XML as lines of N-Triples.

    Parameters
    ----------
    content : Content
        The document.
    base : str
        Its base IRI.

    Attributes
    ----------
    position : int
        How many of its bytes have been read.
    """

    def __init__(self, content: Content, base: str) -> None:
        self.position, self._content = 0, content
        self._elements = Elements(base, content.limits.max_term_bytes, _most(content))
        self._most_elements = ELEMENTS_A_TRIPLE * content.limits.rows
        self._n_elements = self._n_attributes = 0
        self._parser = expat.ParserCreate("UTF-8")

    @property
    def prefixes(self) -> Mapping[str, str]:
        """Namespaces around the first triple, by prefix, as far as they are IRIs."""
        found = self._elements.triples.prefixes or {}
        return {prefix: namespace for prefix, namespace in sorted(found.items())
                if prefix != "xml" and _is_iri(namespace)}  # fmt: skip

    def __iter__(self) -> Iterator[bytes]:
        """Read the document.

        Yields
        ------
        bytes
            Whole lines.

        Raises
        ------
        DatabaseFormatError
            If it isn't RDF/XML, would do harm, or passes a limit; with the line.
        """
        content, parser = self._content, self._parser
        prolog = before_expat(content.name, content.data, content.limits)
        parser.ordered_attributes = True
        parser.buffer_text, parser.buffer_size = True, _TEXT
        parser.StartElementHandler = self._counted if prolog.has_defaults else self._start
        parser.EndElementHandler, parser.CharacterDataHandler = self._end, self._text
        parser.CommentHandler, parser.ProcessingInstructionHandler = self._comment, self._instruct
        self.position = prolog.end
        text = memoryview(content.data)
        try:
            parser.Parse(prolog.text, False)
            size, n = _PIECES[0], 0
            while self.position < len(text):
                parser.Parse(text[self.position : self.position + size], False)
                self.position = min(self.position + size, len(text))
                yield self._elements.triples.taken().encode()
                # within a tag or a comment, which expat may begin anew each time
                size = _PIECES[0] if self._n_elements > n else min(2 * size, _PIECES[1])
                n = self._n_elements
            # a document that is cut off isn't well-formed
            parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise self._refused(f"broken XML ({error})", error.lineno) from None

    def _start(self, tag: str, attributes: list[str]) -> None:
        elements = self._elements
        self._n_elements += 1
        if self._n_elements > self._most_elements:
            raise refused(
                self._content.name,
                f"it has more than {self._most_elements:,} elements, for which its triples would "
                "be too many",
                advice="Use a part of it, or raise `max_rows`.",
            )
        try:
            if len(attributes) > 2 * MAX_ATTRIBUTES:
                raise ForbiddenError(
                    f"an element has {len(attributes) // 2:,} attributes, over {MAX_ATTRIBUTES:,}"
                )
            elements.start(tag, attributes)
            if len(elements.around) + elements.top.depth > MAX_DEPTH:
                raise ForbiddenError(f"its elements nest over {MAX_DEPTH} deep")
        except (ForbiddenError, LongTermError) as error:
            raise self._because(error) from None

    def _counted(self, tag: str, attributes: list[str]) -> None:
        """Read the beginning of an element that may have attributes by default."""
        self._n_attributes += sum(map(len, attributes))
        if self._n_attributes > (most := _most(self._content)):
            raise self._because(
                ForbiddenError(f"its attributes expand to over {most:,} characters")
            )
        self._start(tag, attributes)

    def _end(self, tag: str) -> None:
        try:
            self._elements.end(tag)
        except (ForbiddenError, LongTermError) as error:
            raise self._because(error) from None

    def _text(self, text: str) -> None:
        try:
            self._elements.text(text)
        except (ForbiddenError, LongTermError) as error:
            raise self._because(error) from None

    def _comment(self, text: str) -> None:
        self._literally(f"<!--{text}-->")

    def _instruct(self, target: str, data: str) -> None:
        self._literally(f"<?{target} {data}?>" if data else f"<?{target}?>")

    def _literally(self, written: str) -> None:
        try:
            self._elements.within_literal(written)
        except LongTermError as error:
            raise self._because(error) from None

    def _because(self, error: ForbiddenError | LongTermError) -> Exception:
        if isinstance(error, LongTermError):
            limits = self._content.limits
            refuse_excess(self._content.name, "rdfxml", limits.excess(term=error.args[0]))
        return self._refused(str(error), self._parser.CurrentLineNumber)

    def _refused(self, reason: str, line: int) -> DatabaseFormatError:
        foreign = foreign_text(bytes(self._content.data[:65536]).decode("utf-8", "ignore"))
        if foreign is not None:
            name = self._content.name
            return refused(name, f"it is {foreign.what}", advice=foreign.advice)
        return refused(self._content.name, reason, line)


def _most(content: Content) -> int:
    """Return the most characters that what a document abbreviates may expand to."""
    return max(FREE_EXPANSION, MAX_EXPANSION * len(content.data))


def _is_iri(text: str) -> bool:
    try:
        return bool(checked_iri(text))
    except ForbiddenError:
        return False


class QuadsOfXml(Iterator[ox.Quad]):
    """The quads of a document of RDF/XML, and its prefixes, as a parser of pyoxigraph has them."""

    def __init__(self, content: Content, base: str) -> None:
        self._lines = RdfXmlLines(content, base)
        self._quads = (
            quad for lines in self._lines for quad in ox.parse(lines, format=ox.RdfFormat.N_TRIPLES)
        )

    @property
    def prefixes(self) -> Mapping[str, str]:
        """Namespaces by prefix, once a triple is read."""
        return self._lines.prefixes

    def __next__(self) -> ox.Quad:
        return next(self._quads)
