"""Files that were made to harm end soon and small; each was met by a reader that they harmed."""

import gzip
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from capacity.database import parse_rdf
from capacity.errors import DatabaseFormatError
from tests.oracles import ROOT

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


def entities(n: int) -> str:
    declared = "".join(f'<!ENTITY e{i} "x">' for i in range(n))
    used = "".join(f"<x:p>&e{i};</x:p>" for i in range(n))
    return f"<!DOCTYPE r [{declared}]>{RDF}<r:Description>{used}</r:Description></r:RDF>"


# seconds of the processor are measured at less than a fifth of what is allowed
CASES: dict[str, tuple[str, Callable[[], str], str]] = {
    "attributes": ("rdfxml", lambda: attributes(200_000), "has 200,001 attributes, over 1,000"),
    "namespaces": ("rdfxml", lambda: namespaces(100_000), "over 1,000 namespaces are declared"),
    "entities": ("rdfxml", lambda: entities(100_000), ""),
    "empty arrays": ("jsonld", lambda: "[" + "[]," * 3_000_000 + "[]]", "no triples were found"),
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
        "contexts would be merged",
    ),
    "triple terms": ("ntriples", lambda: "<x:a> <x:p> " + "<<( <x:a> <x:p> " * 10**5, "nest over 128"),
    "reified triples": ("turtle", lambda: "<<" * 10**5, "nest over 128"),
    "brackets": ("turtle", lambda: "[" * 10**6, "read as turtle"),
    "annotations": ("turtle", lambda: "<x:a> <x:p> <x:c>" + "{| <x:q> <x:v> " * 10**5, "read as"),
    "formulas": ("n3", lambda: "{" * 10**5, "read as n3"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_file_that_was_made_to_harm_ends_soon(case: str) -> None:
    format, make, reason = CASES[case]
    text = make()
    start = time.process_time()
    if reason:
        with pytest.raises(DatabaseFormatError, match=reason):
            parse_rdf(text, format)
    else:
        parse_rdf(text, format, multi="keep")
    assert time.process_time() - start < 5


def test_what_is_common_is_no_harm() -> None:
    # a context of many terms, whose prefixes are each defined once, and which define one another
    terms = {f"t{i}": {"@id": f"p:{i}", "@type": "@id"} for i in range(5000)}
    text = json.dumps({"@context": {"p": "x:", **terms}, "@id": "x:a", "t1": "x:b"})
    assert parse_rdf(text, "jsonld").n_triples == 1
    assert parse_rdf(chain(100), "jsonld").n_triples == 1
    assert parse_rdf(attributes(900), "rdfxml", multi="keep").n_triples == 900
    assert parse_rdf(namespaces(900), "rdfxml", multi="keep").n_triples > 1
    # entities that abbreviate namespaces expand to more than themselves, in a large ontology
    used = "<x:p>&obo;</x:p>" * 300_000
    about = f'<!DOCTYPE r [<!ENTITY obo "http://purl.obolibrary.org/obo/">]>{RDF}<r:Description>'
    assert parse_rdf(f"{about}{used}</r:Description></r:RDF>", "rdfxml").n_triples == 1


BOMB = """
import resource, sys
from capacity.database import load
from capacity.errors import DatabaseFormatError
load("examples/figure-1.ttl")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    load(sys.argv[1], **eval(sys.argv[2]))
except DatabaseFormatError as error:
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024, error)
"""


def megabytes(path: Path, **options: int) -> tuple[int, str]:
    """Memory that a refusal takes, in a process of its own, and what it says."""
    done = subprocess.run(
        [sys.executable, "-c", BOMB, str(path), str(options)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    size, _, said = done.stdout.partition(" ")
    return int(size), said


@pytest.mark.slow
def test_a_bomb_costs_its_cap_once_and_no_more(tmp_path: Path) -> None:
    path = tmp_path / "a.nt.gz"
    with gzip.open(path, "wb", compresslevel=9) as file:
        for _ in range(512):
            file.write(bytes(2**20))
    size, said = megabytes(path)
    assert "over 250 times its size" in said
    assert "decompress it first" in said
    # 128 MB, which is 250 times its half a megabyte
    assert size < 200
    # what compresses as facts do is held against the cap alone
    line = b"<http://example.org/%d> <http://example.org/p> <http://example.org/%d> .\n"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for start in range(30):
            file.write(
                b"".join(line % (i * i, i) for i in range(start * 10**5, (start + 1) * 10**5))
            )
    size, said = megabytes(path, max_bytes=150 * 2**20)
    assert "more than 157,286,400 bytes, decompressed" in said
    assert size < 1.5 * 150
