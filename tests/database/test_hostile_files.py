"""Files that were made to harm end soon and small; each was met by a reader that they harmed."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from capacity.database import parse_rdf
from capacity.errors import CapacityError
from tests.harmful import (
    CASES,
    RDF,
    attributes,
    chain,
    long_prefix,
    namespaces,
    read,
    scoped,
    xml_literals,
)
from tests.oracles import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_file_that_was_made_to_harm_is_refused_or_read(name: str) -> None:
    _, make, reason = CASES[name]
    if reason:
        with pytest.raises(CapacityError, match=reason):
            read(name, make())
    else:
        read(name, make())


@pytest.mark.slow
def test_such_files_end_soon_and_small() -> None:
    # five seconds of the processor and a gigabyte, which is several times what is measured
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile", "harmful", str(len(CASES)), "0"],
        cwd=ROOT, capture_output=True, text=True, timeout=400, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout)["not_right"] == []


@pytest.mark.slow
def test_what_is_common_is_no_harm() -> None:
    # a context of many terms, whose prefixes are each defined once, and which define one another
    terms = {f"t{i}": {"@id": f"p:{i}", "@type": "@id"} for i in range(5000)}
    text = json.dumps({"@context": {"p": "x:", **terms}, "@id": "x:a", "t1": "x:b"})
    assert parse_rdf(text, "jsonld").n_triples == 1
    assert parse_rdf(chain(100), "jsonld").n_triples == 1
    assert parse_rdf(attributes(900), "rdfxml", multi="keep").n_triples == 900
    assert parse_rdf(namespaces(900), "rdfxml", multi="keep").n_triples > 1
    # terms with contexts of their own, and XML literals, in the usual numbers
    assert parse_rdf(scoped(5000, 300), "jsonld").n_triples == 10_000
    assert parse_rdf(xml_literals(10_000, 5, length=30), "rdfxml").n_triples == 1
    # a long IRI is no prefix, whatever stands before it
    assert parse_rdf(f"<x:prefix> <x:p> <x:{'a' * 5000}> .", "turtle").n_triples == 1
    assert parse_rdf(long_prefix(300, 5000), "turtle").n_triples == 5000
    # entities that abbreviate namespaces expand to more than themselves, in a large ontology
    used = "<x:p>&obo;</x:p>" * 300_000
    about = f'<!DOCTYPE r [<!ENTITY obo "http://purl.obolibrary.org/obo/">]>{RDF}<r:Description>'
    assert parse_rdf(f"{about}{used}</r:Description></r:RDF>", "rdfxml").n_triples == 1


def test_the_line_of_what_nests_too_deep_is_said() -> None:
    with pytest.raises(CapacityError, match=r"line 3 .*nests over 128 deep"):
        parse_rdf('{"@id":\n"[[",\n"x:p": ' + "[" * 200 + "]" * 200 + "}", "jsonld")
    text = '<x:a> <x:p> """\n<<\n""", # <<\n' + "<<( <x:a> <x:p> " * 200
    with pytest.raises(CapacityError, match="line 4: triple terms nest over 128 deep"):
        parse_rdf(text, "turtle")


def test_no_limit_of_contexts_is_passed_by_a_key_that_is_there_twice() -> None:
    for one in ('"@context": [[%s]]', '"@context": {"t": [[%s]], "t": 1}'):
        context = json.dumps({"b": {"@id": "x:b", "@context": {}}, "v": "x:" + "a" * 1000})
        with pytest.raises(CapacityError, match="an IRI in a context is longer"):
            parse_rdf(f'{{{one % context}, "@context": {{}}, "@id": "x:a"}}', "jsonld")


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
