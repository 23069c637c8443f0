"""Parsing of RDF text as a `Database`.

pyoxigraph parses, and keeps lexical forms as they are written (except that JSON numbers become
canonical). From file to ids it takes a quarter to a seventh of the time of rdflib, for JSON-LD half
(``benchmarks/load_rdf.py``). `quads` has it parsed, and no facts are returned before all of it is.

Conventions: graphs are merged unless one is named; blank nodes are renamed ``b0``, ``b1``, ... in
the order of the file, unless it labels all of them; relative IRIs are resolved against the given
base, else against ``file:///`` and the file's name; a triple term of RDF 1.2 is a token.

References
----------
RDF 1.1 Concepts and Abstract Syntax, W3C 2014; RDF 1.2 Concepts and Abstract Data Model.
"""

from __future__ import annotations

import pyoxigraph as ox

from capacity.checks import shown
from capacity.database.facts import Database
from capacity.database.io.files import pieces
from capacity.database.io.files.content import Content
from capacity.database.io.files.formats import Format
from capacity.database.io.rdf.annotations import apply_choice, check_choice, find_annotations
from capacity.database.io.rdf.graphs import check_graph, find_graph
from capacity.database.io.rdf.guards.json import why_no_facts
from capacity.database.io.rdf.quads import checked_text, parse_quads
from capacity.database.io.reading import Reading
from capacity.database.policy import MultiPolicy
from capacity.database.terms.grammar import lacks_language
from capacity.database.terms.nodes import term_from_pyoxigraph
from capacity.database.terms.term import with_stable_names
from capacity.errors import AnnotationWarning, DatabaseFormatError, warn_caller


def parse_rdf_content(
    content: Content,
    format: Format,
    reading: Reading,
    *,
    multi: MultiPolicy | None = None,
) -> Database:
    """Parse checked content as RDF.

    Options and errors are those of `capacity.database.read_rdf`.
    """
    wanted = check_graph(reading.graph)
    choice, allow_empty = check_choice(reading.annotations_of_facts), reading.allow_empty
    if len(content.data) >= pieces.LARGE and choice in (None, "keep", "drop"):
        from capacity.database.io.rdf.lines.large import read_large

        db = read_large(content, format, reading, graph=wanted, multi=multi)
        if db is not None:
            return db
    where, data = checked_text(content, format, reading.base, reading.contexts)
    quads = parse_quads(content, format, where, data, with_graphs=wanted is not None)
    rows = quads.rows
    n_of_file = len(rows)
    if wanted is not None:
        counts = quads.counts()
        name = find_graph(wanted, counts, quads.prefixes, content.name, format.name)
        rows = rows[quads.graph == (-1 if name is None else list(counts).index(name))]
    in_other_graphs = n_of_file - len(rows)
    if not len(rows) and not allow_empty:
        why = why_no_facts(data) if format.name == "jsonld" and wanted is None else None
        if why is not None:
            raise DatabaseFormatError(content.name, why[0], format=format.name, advice=why[1])
        raise DatabaseFormatError(
            content.name,
            "no triples were found" + (" in the default graph" if wanted is not None else ""),
            format=format.name,
            advice="Check the file and its format; `allow_empty` makes an empty database of it.",
        )
    notes: tuple[str, ...] = ()
    if (found := find_annotations(quads.ids, rows)) is not None:
        iris = {i: node.value for node, i in quads.ids.items() if isinstance(node, ox.NamedNode)}
        rows, note = apply_choice(found, rows, choice, iris, quads.prefixes)
        notes = (note,)
        if choice is None:
            warn_caller(
                AnnotationWarning(
                    f"{note} Choose with annotations_of_facts=: keep, drop, order-4 or order-5."
                )
            )
    elif choice not in (None, "keep", "drop"):
        raise DatabaseFormatError(
            content.name,
            f"no fact is annotated, as `annotations_of_facts` = {shown(choice)} needs",
            format=format.name,
            advice="Omit it.",
        )
    if notes and not len(rows) and not allow_empty:
        raise DatabaseFormatError(
            content.name,
            f"nothing is left of it. {notes[0]}",
            format=format.name,
            advice="Choose otherwise with `annotations_of_facts`.",
        )
    terms = [term_from_pyoxigraph(node) for node in quads.ids]
    for term in terms:
        if term.datatype and lacks_language(term.datatype, term.language):
            raise DatabaseFormatError(
                content.name,
                f"the literal {term.text!r:.60} is of the datatype {term.datatype}, and has no "
                "language",
                format=format.name,
                advice="Add a language, or choose another datatype.",
            )
    return Database.from_ids(
        with_stable_names(terms),
        rows,
        arity=rows.shape[1],
        multi=multi,
        prefixes=quads.prefixes,
        source=content.source(format.name, notes, in_other_graphs),
        allow_empty=allow_empty,
    )
