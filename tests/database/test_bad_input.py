"""Nothing half-loaded is returned: bad input raises one exception that says what to do."""

import os
import random
from pathlib import Path

import pytest

from capacity.database import load, parse_rdf, read_rdf, read_table
from capacity.database.io.files.content import check, read
from capacity.database.io.files.formats import resolve_format
from capacity.database.io.parsing import parsed
from capacity.database.io.reading import Reading
from capacity.errors import DatabaseFormatError, InvalidTypeError
from capacity.reading_limits import Limits
from tests.oracles import EXAMPLES

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
GOOD = b"<x:a> <x:p> <x:b> .\n"


def bomb(levels: int) -> bytes:
    entities = ['<!ENTITY l0 "lol">'] + [
        f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, levels)
    ]
    return (
        '<?xml version="1.0"?><!DOCTYPE r [' + "".join(entities) + "]>"
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="x:">'
        f'<rdf:Description rdf:about="x:a"><x:p>&l{levels - 1};</x:p></rdf:Description></rdf:RDF>'
    ).encode()


CASES = {
    "empty": ("a.ttl", b"", "the file is empty"),
    "blank": ("a.ttl", b" \n\n", "the file is empty"),
    "only comments": ("a.ttl", b"# nothing\n", "no triples were found"),
    "only prefixes": ("a.ttl", b"@prefix : <x:> .\n", "no triples were found"),
    "json without RDF": ("a.json", b'{"name": "x"}', "it is plain JSON"),
    "truncated": ("a.nt", GOOD + b"<x:a> <x:p", r"line 2 \(read as ntriples\)"),
    "truncated turtle": ("a.ttl", b"<x:a> <x:p> <x:b> ;", "read as turtle"),
    "an image": ("a.ttl", PNG, "it is an image"),
    "binary": ("a.ttl", b"\xff\0\xfe\0garbage", "binary, it holds NUL bytes"),
    "nothing but NUL": ("a.ttl", bytes(1000), "binary, it holds NUL bytes"),
    "UTF-16": ("a.ttl", "<x:a> <x:p> <x:b> .".encode("utf-16"), "iconv -f UTF-16"),
    "Latin-1": ("a.nt", GOOD + b'<x:a> <x:p> "\xe9" .', "line 2: byte 0xe9 isn't UTF-8.*LATIN1"),
    "wrongly named": ("a.nt", b"<x:a> <x:p> <x:b> ; <x:q> <x:c> .", "choose its format"),
    "turtle named csv": ("a.csv", (EXAMPLES / "figure-1.ttl").read_bytes(), "cell"),
    "prose": ("a.ttl", b"Dear reader,\nhello.\n", "read as turtle"),
    "unknown name": ("a.xyz", b"hello\n", "neither its content nor its name"),
    "a web page": ("a.ttl", b"<!DOCTYPE html><html></html>", "HTML page"),
    "broken gzip": ("a.ttl.gz", b"\x1f\x8b\x08\0garbage", "gzip stream is broken"),
    "two columns": ("a.tsv", b"a\tp\tb\na\tp\n", r"line 2.*2 cells"),
    "bad quotes": ("a.csv", b'a,p,"b"c\n', "line 1.*RFC 4180"),
    "header alone": ("a.tsv", b"subject\tpredicate\tobject\n", "no rows"),
    "nested entities": ("a.rdf", bomb(9), "its entities expand to"),
    "external entity": (
        "a.rdf", b'<!DOCTYPE r [<!ENTITY e SYSTEM "file:///etc/passwd">]><r>&e;</r>', "fetched",
    ),
    "broken XML": ("a.rdf", b"<?xml version='1.0'?><rdf:RDF", "read as rdfxml"),
    "remote context": (
        "a.jsonld", b'{"@context": "http://example.org/c", "@id": "x:a"}', "nothing is fetched",
    ),
    "hidden remote context": (
        "a.jsonld", b'{"@context": ["http://x/c"], "@context": {}, "@id": "x:a"}', "is fetched",
    ),
    "escaped remote context": (
        "a.jsonld", b'{"\\u0040context": "http://x/c", "@id": "x:a"}', "nothing is fetched",
    ),
    "half a character": ("a.jsonld", b'{"@id": "x:a", "x:p": "\\ud800"}', "half of a surrogate"),
    "deep JSON": ("a.jsonld", b'{"a":' * 6000 + b"1" + b"}" * 6000, r"line 1 .*over 128 deep"),
    "broken JSON": ("a.jsonld", b'{"@id": "x:a"', "read as jsonld"),
    "broken JSON with a context": ("a.jsonld", b'{"@context": {}, "@id": "x:a"', "broken JSON"),
    "RDF-star": (
        "a.nt", b"<< <x:a> <x:p> <x:b> >> <x:q> <x:c> .\n", r"line 1.*read it as turtle",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_bad_files_raise_one_error_that_names_them(case: str, tmp_path: Path) -> None:
    name, content, reason = CASES[case]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DatabaseFormatError, match=reason) as error:
        load(path)
    assert str(path) in str(error.value)


def test_missing_files_folders_and_unknown_formats_are_named(tmp_path: Path) -> None:
    with pytest.raises(DatabaseFormatError, match="no such file"):
        load(tmp_path / "none.ttl")
    with pytest.raises(DatabaseFormatError, match="it is a folder"):
        load(tmp_path)
    with pytest.raises(DatabaseFormatError, match=r"unknown format 'hdt'.*turtle, ntriples"):
        load(EXAMPLES / "figure-1.ttl", format="hdt")


def test_rdf_and_table_readers_send_each_other_what_is_not_theirs(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tp\tb\n")
    with pytest.raises(DatabaseFormatError, match="it must be RDF"):
        read_rdf(tmp_path / "a.tsv")
    with pytest.raises(DatabaseFormatError, match="it must be a table"):
        read_table(EXAMPLES / "figure-1.ttl")
    with pytest.raises(DatabaseFormatError, match=r"must be RDF.*turtle, ntriples"):
        parse_rdf("a\tp\tb", "tsv")
    with pytest.raises(InvalidTypeError, match=r"got list.*use from_rdflib"):
        read_rdf(["a"])  # type: ignore[arg-type]


def test_flat_entities_are_common_in_ontologies_and_pass() -> None:
    text = (
        '<!DOCTYPE rdf:RDF [<!ENTITY x "http://x.org/">]>'
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="http://x.org/">'
        '<rdf:Description rdf:about="&x;a"><x:p rdf:resource="&x;b"/></rdf:Description></rdf:RDF>'
    )
    assert parse_rdf(text, "rdfxml").objects[0].text == "http://x.org/b"


def test_flat_entities_that_blow_up_are_refused() -> None:
    text = f'<!DOCTYPE r [<!ENTITY e "{"e" * 10_000}">]><r>{"&e;" * 10_000}</r>'
    with pytest.raises(DatabaseFormatError, match="expand to 100,000,000 bytes"):
        parse_rdf(text, "rdfxml")


def test_brackets_in_strings_are_no_depth() -> None:
    text = '{"@id": "x:a", "x:p": "' + "[{" * 500 + '\\""}'
    assert parse_rdf(text, "jsonld").n_triples == 1


@pytest.mark.parametrize(
    "cell", ['"a" . <x:b> <x:p> "c"', "<x:a> <x:b>", '"a" # note', "plain", "<a b>", '"a"@']
)
def test_a_cell_must_hold_one_term(cell: str, tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text(f"<x:a>\t<x:p>\t{cell}\n")
    with pytest.raises(DatabaseFormatError, match="one N-Triples term"):
        read_table(tmp_path / "a.tsv", terms="n3")


def test_a_file_over_the_cap_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.nt"
    path.write_bytes(GOOD)
    os.truncate(path, 2**41)  # sparse: no disk is used
    with pytest.raises(DatabaseFormatError, match="more than 4,294,967,296 bytes"):
        load(path)


def test_what_decompresses_over_the_cap_is_refused(tmp_path: Path) -> None:
    import gzip

    path = tmp_path / "a.nt.gz"
    path.write_bytes(gzip.compress(GOOD * 10_000))
    with pytest.raises(DatabaseFormatError, match="more than 1,000 bytes, decompressed"):
        read(path, limits=Limits(1000))


@pytest.mark.slow
def test_random_damage_is_read_or_refused_and_nothing_else() -> None:
    texts = {
        "a.ttl": (EXAMPLES / "figure-1.ttl").read_bytes(),
        "a.trig": b'<x:g> { <x:a> <x:p> "l\\n"@en, [ <x:q> ( 1 2.0 ) ] }',
        "a.jsonld": b'{"@context": {"p": "x:p"}, "@id": "x:a", "p": [{"@value": "v"}]}',
        "a.rdf": b'<!DOCTYPE rdf:RDF [<!ENTITY x "x:">]><rdf:RDF xmlns:x="x:" xmlns:rdf="http://www.w3'
        b'.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="&x;a"><x:p>t</x:p>'
        b"</rdf:Description></rdf:RDF>",
        "a.tsv": b"a\tp\tb\nc\tp\td\n",
        "a.csv": b'a,p,"b ""x"""\nc,p,d\n',
    }
    pieces = [
        b'"',
        b"<",
        b">",
        b"\\u",
        b"\\",
        b"\0",
        b"{",
        b"[",
        b"(",
        b"&",
        b"@",
        b"\t",
        b"\xff",
        b"_:",
    ]
    rng = random.Random(0)
    read = 0
    for _ in range(4000):
        name = rng.choice(list(texts))
        data = bytearray(texts[name])
        for _ in range(rng.randint(1, 3)):
            i = rng.randrange(len(data) + 1)
            kind = rng.choice(["insert", "delete", "repeat", "cut"])
            if kind == "insert":
                data[i:i] = rng.choice(pieces)
            elif kind == "delete":
                del data[i : i + rng.randint(1, 9)]
            elif kind == "repeat":
                data[i:i] = data[i // 2 : i // 2 + rng.randint(1, 30)]
            else:
                del data[max(i, 1) :]
        try:
            content = check(name, bytes(data))
            chosen = resolve_format(content, None)
            db = parsed(content, chosen, Reading(), multi="keep")
        except DatabaseFormatError:
            continue
        assert db.n_triples > 0
        read += 1
    # damage is often harmless, and often not
    assert 400 < read < 3600


RDF = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="x:">'
BODY = f'{RDF}<rdf:Description rdf:about="x:a"><x:p>&b;</x:p></rdf:Description></rdf:RDF>'
PROLOGS = {
    "lower case": '<!doctype r [<!ENTITY a "zz"><!ENTITY b "&a;&a;">]>',
    "parameter": '<!DOCTYPE r [%x; <!ENTITY a "zz"><!ENTITY b "&a;&a;">]>',
    "comment": '<!DOCTYPE r [<!-- <!ENTITY a "zz"><!ENTITY b "&a;&a;"> -->]>',
    "in a circle": '<!DOCTYPE r [<!ENTITY b "&a;"><!ENTITY a "&#38;b;">]>',
    "elsewhere": '<!DOCTYPE r SYSTEM "http://x/r.dtd">',
    "encoding": '<?xml version="1.0" encoding="utf-7"?>',
}


@pytest.mark.parametrize("case", PROLOGS)
def test_entities_that_no_text_is_declared_for_are_refused(case: str) -> None:
    with pytest.raises(DatabaseFormatError):
        parse_rdf(PROLOGS[case] + BODY, "rdfxml")


def test_a_truncated_xml_file_is_never_half_loaded() -> None:
    whole = f'{RDF}<rdf:Description rdf:about="x:a"><x:p>b</x:p></rdf:Description>'
    whole += '<rdf:Description rdf:about="x:c"><x:p>half</x:p></rdf:Description></rdf:RDF>'
    for stop in range(len(whole)):
        with pytest.raises(DatabaseFormatError):
            parse_rdf(whole[:stop], "rdfxml")
    assert parse_rdf(whole, "rdfxml").n_triples == 2


def test_deep_nesting_is_refused_before_it_crashes_a_parser() -> None:
    n = 20_000
    terms = "<x:s> <x:p> " + "<<( <x:a> <x:p> " * n + "<x:b>" + " )>>" * n + " ."
    with pytest.raises(DatabaseFormatError, match="triple terms nest"):
        parse_rdf(terms, "ntriples")
    elements = RDF + '<rdf:Description rdf:about="x:a"><x:p>' * n
    with pytest.raises(DatabaseFormatError, match="elements nest"):
        parse_rdf(elements, "rdfxml")
    # brackets in a literal are text
    code = f'<x:a> <x:p> "{"cout << x; " * 2000}" .'
    assert parse_rdf(code, "turtle").n_triples == 1


def test_formulas_are_no_facts() -> None:
    with pytest.raises(DatabaseFormatError, match="formula"):
        parse_rdf("{ <x:moon> <x:of> <x:cheese> } a <x:Falsehood> .", "n3")


def test_half_a_character_is_refused_with_contexts_as_without() -> None:
    text = '{"@context": "http://c/", "@id": "x:a", "x:p": "\\ud800"}'
    with pytest.raises(DatabaseFormatError, match="half of a surrogate"):
        parse_rdf(text, "jsonld", contexts={"http://c/": {"@context": {}}})


def test_long_numbers_in_json_are_read() -> None:
    text = '{"@context": {}, "@id": "x:a", "x:p": {"@value": "' + "1" * 5000 + '"}}'
    assert parse_rdf(text, "jsonld").n_triples == 1


def test_what_has_no_end_or_no_writer_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.ttl")
    for path, kind in ((Path("/dev/zero"), "a device"), (tmp_path / "pipe.ttl", "a named pipe")):
        with pytest.raises(DatabaseFormatError, match=f"{path}: it is {kind}"):
            read(path, limits=Limits(1_000_000))


def test_a_file_is_read_no_further_than_the_cap(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(b"a" * 1_000_001)
    with pytest.raises(DatabaseFormatError, match="more than 1,000,000 bytes"):
        read(tmp_path / "a.tsv", limits=Limits(1_000_000))


def test_a_word_that_begins_as_a_compressed_file_does_is_a_word(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("BZhao\tborn_in\tWuhan\n")
    assert load(tmp_path / "a.tsv").n_triples == 1


def test_a_broken_later_stream_is_not_dropped(tmp_path: Path) -> None:
    import bz2
    import lzma

    for compress in (bz2.compress, lzma.compress):
        second = bytearray(compress(b"<x:c> <x:p> <x:d> .\n"))
        path = tmp_path / "a.nt"
        path.write_bytes(compress(GOOD) + bytes(second))
        assert load(path).n_triples == 2
        second[0] ^= 1
        path.write_bytes(compress(GOOD) + bytes(second))
        with pytest.raises(DatabaseFormatError, match="stream is broken"):
            load(path)
        path.write_bytes(compress(GOOD * 1000)[:-20])
        with pytest.raises(DatabaseFormatError, match="stream is broken"):
            load(path)


def test_text_without_a_utf_8_form_is_refused() -> None:
    with pytest.raises(DatabaseFormatError, match="no UTF-8 form"):
        parse_rdf('<x:a> <x:p> "\ud800" .', "turtle")
