"""Files of facts that something has hit: bytes, tokens, nests, and parts of other formats.

A reader gives the facts of the file as it is then, or raises a `CapacityError`.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from capacity.database import list_graphs, load
from tests.hostile_sweeps import bytes_hit, value_replaced

_RDF = 'xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="http://x/"'
WHOLE = {
    "turtle": """@prefix : <http://x/> . @base <http://y/> .
:a :p :b, "c\\n\\u00e9"@en--ltr, 1, 2.0, true, [ :q ( 1 <z> '''long
text''' ) ] ; a :C .
:a :p :d {| :since 2001 |} . << :a :p :b ~ :r >> :q <<( :a :p "x" )>> . # the end
""",
    "trig": """VERSION "1.2" PREFIX : <http://x/> :a :p :b . :g { :a :p "c" . [] :q ( :d ) }
_:h { :e :p :f {| :w 1 |} } GRAPH <http://x/i> { }
""",
    "n3": "@prefix : <http://x/> . :a :p :b ; :q (1 2) . :c = :d . :e => :f . :a!:p :q true .\n",
    "ntriples": """<x:a> <x:p> "b\\u0000\\t"@en . # why
_:c <x:p> <<( <x:a> <x:p> "1"^^<x:t> )>> .
""",
    "nquads": '<x:a> <x:p> "b"@en <x:g> .\n_:c <x:p> _:d _:g .\n<x:a> <x:q> <x:b> .\n',
    "rdfxml": f"""<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE r:RDF [<!ENTITY e "http://e/">]>
<r:RDF {_RDF}><r:Description r:about="&e;a" x:p="v"><x:q r:resource="#b"/>
<x:l r:parseType="Collection"><x:C/><r:Description r:ID="i"/></x:l><x:m xml:lang="en">t</x:m>
<x:n r:parseType="Literal"><b>bold</b></x:n></r:Description></r:RDF>
""",
    "jsonld": """{"@context": ["http://c/", {"p": {"@id": "http://x/p", "@type": "@id"}, "@vocab":
"http://x/", "s": {"@id": "http://x/s", "@context": {"t": "http://x/t"}}, "j": {"@type": "@json"}}],
"@graph": [{"@id": "http://x/a", "p": "http://x/b", "q": [{"@value": "v", "@language": "en"}, 1.5],
"s": {"t": "u"}, "j": {"@context": "none"}, "l": {"@list": [1, [2]]}}]}
""",
    "tsv": "subject\tpredicate\tobject\na\tp\tb\nc\tp\t<x:d>\n",
    "csv": 'a,p,"b ""x"""\r\nc,p,d\r\n',
}
_TOKENS = ['"', "'''", "<", ">", "<<", "<<(", ")>>", "{|", "|}", "\\u", "\\ud800", "\\", "\0",
           "{", "[", "(", ")", "]", "}", "&", "&e;", "@", "^^", "\t", "_:", "\n", "\r", ".", ";",
           ",", "#", "@prefix", "VERSION", "<!ENTITY f '&e;'>", "<!--", "<![CDATA[", '"@context":',
           "@import", "\ufeff", "\u202e", "=>", "true", "1e999999"]  # fmt: skip
_NESTS = ["[", "(", "{", "<<( <x:a> <x:p> ", "{|", "<x:p>", '{"a":', "[[", "<!--", "'", "!<x:p>"]
_CONTEXTS = {"http://c/": {"@context": {"q": "http://x/q", "@base": "http://z/"}}}


def rdf(name: str, folder: Path) -> Callable[[Path, random.Random], list[Any]]:
    """A file of one format, hit a few times; it is loaded, and its graphs are listed."""
    whole = WHOLE[name].encode()
    hits = [bytes_hit, _letter, _letter, _words, _words, _words, _token, _splice, _nest]
    if name == "jsonld":
        hits += 4 * [_json]

    def case(_at: Path, rng: random.Random) -> list[Any]:
        data = whole
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            data = rng.choice(hits)(data, rng)
        if rng.random() < 0.05:
            data = rng.choice((gzip.compress, bz2.compress, lzma.compress))(data)
            data = rng.choice((bytes_hit, lambda data, _: data))(data, rng)
        path = folder / f"facts.{rng.choice((name, 'txt', 'ttl'))}"
        path.write_bytes(data)
        options: dict[str, Any] = {"multi": "keep", "allow_empty": rng.random() < 0.2}
        if name not in ("tsv", "csv"):
            if rng.random() < 0.3:
                options["graph"] = rng.choice(("default", "x:g", "_:g", "http://x/g", "union"))
            if rng.random() < 0.3:
                options["annotations_of_facts"] = rng.choice(("drop", "order-4", "order-5", "x:p"))
            if rng.random() < 0.8:
                options["contexts"] = _CONTEXTS
        if rng.random() < 0.5:
            options["format"] = name
        return [
            partial(load, path, **options) if rng.random() < 0.9 else partial(list_graphs, path)
        ]

    return case


def _letter(data: bytes, rng: random.Random) -> bytes:
    letters = [i for i, byte in enumerate(data) if chr(byte).isalnum() and byte < 128] or [0]
    at = rng.choice(letters)
    return data[:at] + rng.choice(b"abpqx0").to_bytes() + data[at + 1 :]


def _words(data: bytes, rng: random.Random) -> bytes:
    """A tag, a word or a space gone, doubled, or another's; such a file is often whole."""
    words = re.findall(rb"<[^<>]*>|\w+|\s+|[^\w\s]", data) or [b"a"]
    at, other = rng.randrange(len(words)), rng.randrange(len(words))
    match rng.randrange(4):
        case 0:
            del words[at]
        case 1:
            words[at:at] = words[min(at, other) : max(at, other)]
        case 2:
            words[at] = words[other]
        case _:
            words[at], words[other] = words[other], words[at]
    return b"".join(words)


def _json(data: bytes, rng: random.Random) -> bytes:
    try:
        held = json.loads(data)
    except (ValueError, RecursionError):
        return data
    return value_replaced(data, rng) if held and isinstance(held, dict | list) else data


def _token(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(_TOKENS).encode() + data[at + rng.choice((0, 0, 1, 5)) :]


def _splice(data: bytes, rng: random.Random) -> bytes:
    other = rng.choice(list(WHOLE.values())).encode()
    at, start = rng.randrange(len(data) + 1), rng.randrange(len(other))
    return data[:at] + other[start : start + rng.randrange(200)] + data[at:]


def _nest(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(_NESTS).encode() * rng.choice((10, 200, 100_000)) + data[at:]


KINDS = {name: partial(rdf, name) for name in WHOLE}
