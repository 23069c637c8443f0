"""Files that were made to harm: each took minutes, or all memory, or crashed a parser once.

They end soon, and small, as `tests.hostile` finds in a process of its own.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

from capacity.database import parse_rdf
from capacity.database.io.files.content import Content
from capacity.database.io.files.formats import guess_format
from tests.database.ways import WAYS, read_by

RDF = '<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="x:">'


def attributes(n: int) -> str:
    many = " ".join(f'x:a{i}="1"' for i in range(n))
    return f'{RDF}<r:Description r:about="x:a" {many}/></r:RDF>'


def namespaces(n: int) -> str:
    """As many as a hundred elements, one within the other, declare."""
    nest = "".join(
        f"<x:p{''.join(f' xmlns:n{i}_{j}=' + chr(34) + 'x:' + chr(34) for j in range(n // 100))}>"
        "<r:Description>"
        for i in range(100)
    )
    end = "</r:Description></x:p>" * 100
    return f"{RDF}<r:Description>{nest}{'<x:q>1</x:q>' * 20_000}{end}</r:Description></r:RDF>"


def chain(n: int, key: str = "@context") -> str:
    """Terms, each defined by the next: the parser recurs into them, and crashes."""
    terms = {f"t{i}": {"@id": f"t{i + 1}"} for i in range(n)}
    return json.dumps({key: {**terms, f"t{n}": "x:y"}, "@id": "x:a", "t0": 1})


def scoped(n: int, terms: int) -> str:
    """A term's own context is merged with a large one as often as the term is used."""
    context = {f"a{i}": f"x:{i}" for i in range(terms)}
    context["s"] = {"@id": "x:s", "@context": {"b": "x:b"}}  # type: ignore[assignment]
    return json.dumps(
        {"@context": context, "@graph": [{"@id": f"x:{i}", "s": {"b": i}} for i in range(n)]}
    )


def xml_literals(n: int, children: int, length: int = 998) -> str:
    """Each child of an XML literal is written with its namespace."""
    declared = " ".join(f'xmlns:n{i}="x:{i:0>{length}}"' for i in range(10))
    literal = f'<x:q r:parseType="Literal">{"<n1:b/>" * children}</x:q>'
    return f"{RDF[:-1]} {declared}><r:Description>{literal * n}</r:Description></r:RDF>"


def long_prefix(length: int, n: int, comment: str = "") -> str:
    lines = "".join(f"p:{i} p:p p:b .\n" for i in range(n))
    return f"@prefix p: {comment}<x:{'a' * length}> .\n{lines}"


def long_base(n: int) -> str:
    """Each base is resolved against the one before."""
    lines = "".join(f"<{i}> <p> <b> .\n" for i in range(40 * n))
    return "@base <x:/> .\n" + f"@base <{'a' * 900}/> .\n" * n + lines


def one_reifier(n: int) -> str:
    """It stands for n facts, and has n annotations."""
    return "".join(f"<x:a> <x:p> <x:{i}> ~ <x:r> . <x:r> <x:q> {i} .\n" for i in range(n))


def entities(n: int) -> str:
    declared = "".join(f'<!ENTITY e{i} "x">' for i in range(n))
    used = "".join(f"<x:p>&e{i};</x:p>" for i in range(n))
    return f"<!DOCTYPE r [{declared}]>{RDF}<r:Description>{used}</r:Description></r:RDF>"


def sections(kind: str, n: int) -> str:
    """A term, or what is none, of characters that begin or end something elsewhere."""
    within = {
        "CDATA": f"<![CDATA[{'<' * n}]]>", "CDATA, brackets": f"<![CDATA[{']' * n}]]>",
        "comment": f"<!--{'<' * n}-->", "instruction": f"<?x {'<' * n}?>",
        "attribute": f"</x:q><x:q x:r='{'>' * n}'/><x:q>",
    }[kind]  # fmt: skip
    return f"{RDF}<r:Description><x:q>{within}</x:q></r:Description></r:RDF>"


# format, or nothing if it is to be guessed; text; and why it is refused, or nothing if it isn't
CASES: dict[str, tuple[str, Callable[[], str], str]] = {
    "attributes": ("rdfxml", lambda: attributes(200_000), "has 200,001 attributes, over 1,000"),
    "namespaces": ("rdfxml", lambda: namespaces(100_000), "over 1,000 namespaces are declared"),
    "entities": ("rdfxml", lambda: entities(100_000), ""),
    "empty arrays": ("jsonld", lambda: "[" + "[]," * 3_000_000 + "[]]", "more than .* cells"),
    "a chain of terms": ("jsonld", lambda: chain(100_000), "over 128 terms of a context"),
    "an escaped chain": (
        "jsonld",
        lambda: chain(10_000).replace("@context", "\\u0040co\\u006Etext"),
        "over 128 terms of a context",
    ),
    "a chain in a circle": (
        "jsonld", lambda: chain(10_000).replace("x:y", "t0"), "over 128 terms of a context",
    ),
    "contexts": (
        "jsonld",
        lambda: json.dumps(
            {"@context": {f"a{i}": f"x:{i}" for i in range(20_000)},
             "@graph": [{"@context": {"b": "x:b"}, "@id": "x:a", "b": i} for i in range(20_000)]}
        ),
        "used 20,001 times, would be merged",
    ),
    "contexts of terms": ("jsonld", lambda: scoped(20_000, 20_000), "used 20,00. times, would be"),
    "a long vocabulary": (
        "jsonld",
        lambda: json.dumps({"@context": {"@vocab": "x:" + "a" * 10**5}, **dict.fromkeys("ab", 1)}),
        "an IRI in a context is longer than 1,000 characters",
    ),
    "escapes": ("jsonld", lambda: '{"@id": "x:a", "x:p": "' + "\\n" * 10**7 + '"}', "8 MiB"),
    "XML literals": ("rdfxml", lambda: xml_literals(20_000, 1), "namespaces in XML literals"),
    "an XML literal": ("rdfxml", lambda: xml_literals(1, 12_000), "namespaces in XML literals"),
    "a long namespace": (
        "rdfxml",
        lambda: f'{RDF[:-1]} xmlns:y="{"a" * 1001}"></r:RDF>',
        "a namespace is longer than 1,000 characters",
    ),
    "a long XML base": (
        "rdfxml",
        lambda: f'{RDF}<r:Description xml:base="x:{"a" * 999}"/></r:RDF>',
        "its base is longer than 1,000 characters",
    ),
    "a section of CDATA": ("rdfxml", lambda: sections("CDATA", 60 * 10**6), "a cell is longer"),
    "brackets in CDATA": (
        "rdfxml", lambda: sections("CDATA, brackets", 60 * 10**6), "a cell is longer",
    ),
    "a comment": ("rdfxml", lambda: sections("comment", 60 * 10**6), "a cell is longer"),
    "an instruction": ("rdfxml", lambda: sections("instruction", 60 * 10**6), "a cell is longer"),
    "an attribute": ("rdfxml", lambda: sections("attribute", 60 * 10**6), "a cell is longer"),
    "a long prefix": (
        "turtle", lambda: long_prefix(10**6, 10**5, "# <\n"), "line 1: a prefix or a base is long",
    ),
    "a base that grows": ("turtle", lambda: long_base(1000), "over 64 times its size"),
    "anonymous graphs": ("trig", lambda: "[] { <x:a> <x:p> 1 }\n" * 60_000, "in the graph <x:g>"),
    "graphs of blank names": (
        "nquads",
        lambda: "".join(f"<x:a> <x:p> <x:b> _:g{i} .\n" for i in range(60_000)),
        "in the graph <x:g>",
    ),
    "a reifier": ("turtle", lambda: one_reifier(3000), "would make 9,000,000 facts of"),
    "triple terms": ("ntriples", lambda: "<x:a> <x:p> " + "<<( <x:a> <x:p> " * 10**5, "over 128"),
    "reified triples": ("turtle", lambda: "<<" * 10**5, "nest over 128"),
    "brackets": ("turtle", lambda: "[" * 10**6, "read as turtle"),
    "annotations": ("turtle", lambda: "<x:a> <x:p> <x:c>" + "{| <x:q> <x:v> " * 10**5, "read as"),
    "a line of spaces": ("", lambda: "@prefix : <x:> .\n" + " " * 65_000, ""),
    "spaces in a statement": ("", lambda: "<x:a> <x:p>" + " " * 65_000 + "1", ""),
    "open IRIs": ("", lambda: "_:" + "<" * 65_000, ""),
    "open elements": ("", lambda: "<html>" + "<script " * 8_000, "an HTML page"),
    "formulas": ("n3", lambda: "{" * 10**5, "read as n3"),
}  # fmt: skip


def read(name: str, text: str) -> None:
    """Read a file of this kind, with the options that it harms."""
    if not CASES[name][0]:
        guess_format(Content("facts", text.encode(), ""))
        return
    options: dict[str, Any] = {}
    if "graphs" in name:
        options["graph"] = "x:g"
    if name == "a reifier":
        options["annotations_of_facts"] = "order-5"
    parse_rdf(text, CASES[name][0], multi="keep", **options)


def read_as_columns(way: str, name: str, text: str) -> None:
    """Read it as a large file is read."""
    with read_by(way):
        read(name, text)


def harmful(_folder: Path) -> Callable[[Path, random.Random], list[Any]]:
    """One of these files after the other, as it is and as large files are read."""
    names = cycle(CASES)
    # what is compiled for large files is there before any limit
    with read_by("compiled"):
        parse_rdf("<x:a> <x:p> <x:b> .\n", "ntriples", multi="keep")

    def case(_at: Path, _rng: random.Random) -> list[Any]:
        name = next(names)
        text = CASES[name][1]()
        # its limit is a multiple of the file's length
        as_it_is = not CASES[name][0] or name == "a base that grows"
        ways = [] if as_it_is else [partial(read_as_columns, way, name, text) for way in WAYS[:2]]
        return [partial(read, name, text), *ways]

    return case
