"""No table is misread in silence: it is recognised where that is certain, and refused elsewhere."""

import io
import math
import random
import re
from dataclasses import replace
from datetime import date
from decimal import Decimal
from itertools import permutations
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from capacity.database import (
    Database,
    Term,
    from_arrow,
    from_pandas,
    label,
    load,
    parse_rdf,
    read_table,
    to_pandas,
    write,
    write_tsv,
)
from capacity.database.io.tables.headers import find_header, role_order
from capacity.errors import CapacityError, DatabaseFormatError, InvalidArgumentError
from capacity.stores import count_duckdb
from tests.oracles import EXAMPLES
from tests.stores.recount import facts_of, recount
from tests.tiers import examples

FACTS = "Ann\tknows\tBob\nBob\tknows\tCid\n"


def put(folder: Path, text: str | bytes, name: str = "facts.tsv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def texts(db: Database) -> set[tuple[str, ...]]:
    return {tuple(db.tokens[i].text for i in row) for row in db.token_tuples.tolist()}


# what was read as facts in silence before


def test_our_own_table_of_rdf_keeps_the_kind_of_every_term(tmp_path: Path) -> None:
    text = """@prefix : <http://e/> .
    :a :p "1", 1, "chat"@fr, "left"@en--ltr, _:b, <<( :a :p "x" )>> . _:b :q :a ."""
    db = parse_rdf(text, "turtle", multi="keep", annotations_of_facts="keep")
    write_tsv(db, tmp_path / "facts.tsv")
    again = load(tmp_path / "facts.tsv", multi="keep")
    assert again == db
    assert [tuple(term) for term in again.tokens] == [tuple(term) for term in db.tokens]
    # as a table of pandas, too, with its own header
    to_pandas(db).to_csv(tmp_path / "facts.csv", index=False)
    assert load(tmp_path / "facts.csv", multi="keep") == db


@pytest.mark.parametrize(
    "header",
    [":START_ID\t:TYPE\t:END_ID", ":START_ID(Person)\t:TYPE\t:END_ID(City-1)", "start\tlabel\tend",
     "start_id\ttype\tend_id", "sujet\tprédicat\tobjet", "sujet\tpredicat\tobjet",
     "Subjekt\tPrädikat\tObjekt", "Sujet\tPre\u0301dicat\tObjet", "sujeto\tpredicado\tobjeto",
     "head\trelation\ttail", "Subject\tPredicate\tObject", "SUBJ\tPRED\tOBJ", "s\tp\to", "h\tr\tt",
     "?s\t?p\t?o", "subject_id\trelation\tobject_id", "Source\tRelationship\tTarget",
     "from\tedge\tto", "entity1\trelation\tentity2", "#node1\tproperty\tnode2"],
)  # fmt: skip
def test_a_header_in_other_words_is_no_fact(header: str, tmp_path: Path) -> None:
    # variables say that the cells are terms
    facts = "<x:Ann>\t<x:knows>\t<x:Bob>\n" if header.startswith("?") else FACTS
    bare = load(put(tmp_path, facts, "bare.tsv"))
    for ends in ("\n", "\r\n"):
        assert load(put(tmp_path, header + ends + facts)) == bare
    if not header.startswith("?"):
        assert load(put(tmp_path, (header + "\n" + facts).replace("\t", ","), "facts.csv")) == bare


def test_the_columns_are_read_by_their_roles(tmp_path: Path) -> None:
    words = {"source": "Ann", "relation": "knows", "target": "Bob"}
    for order in permutations(words):
        row = "\t".join(words[word] for word in order)
        db = load(put(tmp_path, "\t".join(order) + "\n" + row + "\n"))
        assert texts(db) == {("Ann", "knows", "Bob")}, order
        frame = pd.DataFrame([row.split("\t")], columns=pd.Index(order))
        assert from_pandas(frame) == db


def test_results_of_sparql_are_terms(tmp_path: Path) -> None:
    # SPARQL 1.1 Query Results TSV, section 4: terms in Turtle's syntax, numbers short
    text = '?film\t?by\t?said\n<x:Alien>\t<x:year>\t1979\n_:b\t<x:title>\t"Alien"@en\n'
    db = load(put(tmp_path, text))
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    assert db.objects == (Term("literal", "1979", integer), Term("literal", "Alien", language="en"))
    assert [term.kind for term in db.subjects] == ["blank", "iri"]
    short = {"4.5": "decimal", "-1e3": "double", "true": "boolean", "+7": "integer"}
    for cell, kind in short.items():
        db = load(put(tmp_path, f"?s\t?p\t?o\n<x:a>\t<x:p>\t{cell}\n"))
        assert db.objects == (Term("literal", cell, integer.replace("integer", kind)),)
    # an unbound variable is no term, and its row no row of labels
    for head in ("?s\t?p\t?o\n", "<x:b>\t<x:p>\t<x:c>\n"):
        with pytest.raises(DatabaseFormatError, match=r"line 2.*''.*BOUND") as refusal:
            load(put(tmp_path, head + "<x:a>\t<x:p>\t\n"))
        assert "long" not in str(refusal.value)


@pytest.mark.parametrize("between", ["\t", " ", ""])
def test_n_triples_in_a_file_named_as_a_table_are_n_triples(between: str, tmp_path: Path) -> None:
    lines = [("<x:a>", "<x:p>", '"c\\t d .\u2028"@en', "."), ("_:b", "<x:p>", "<x:a>", ".")]
    text = "# facts\n" + "".join(between.join(line) + "\n" for line in lines)
    db = parse_rdf(text, "ntriples")
    for name in ("facts.tsv", "facts.csv"):
        again = load(put(tmp_path, text, name))
        assert again == db
        assert again.source is not None
        assert again.source.format == "ntriples"
    quads = text.replace(".\n", "<x:g> .\n")
    assert load(put(tmp_path, quads)) == db
    # said to be a table, it is refused
    with pytest.raises(DatabaseFormatError, match=r"line|terms"):
        load(put(tmp_path, text), format="tsv")


def test_a_long_line_is_told_from_n_triples_in_the_time_of_its_length(tmp_path: Path) -> None:
    # each would take a minute or more if two repetitions shared its characters
    n = 2**15
    for end in ("_:" * n, "_:" + "a." * n + " ", "<b>" + " " * 2 * n, "<<(" + ")>> _:a" * (n // 4)):
        db = load(put(tmp_path, f"<a> <p> {end}\t1\tx\n"))
        assert [term.kind for term in db.tokens] == ["label"] * 3


def test_a_long_number_is_told_from_a_double_in_the_time_of_its_length(tmp_path: Path) -> None:
    # 10^12 steps, hours, if two repetitions shared its digits
    digits = "1" * 10**6
    for cell in (digits + "x", digits + ".x", "." + digits + "x", digits + "." + digits + "ex"):
        with pytest.raises(DatabaseFormatError, match="line 2"):
            load(put(tmp_path, f"?s\t?p\t?o\n<x:a>\t<x:p>\t{cell}\n"), max_term_bytes=10**7)
    for double in ("1e5", "1.e5", "1.5E-5", ".5e+5", "-1e5"):
        db = load(put(tmp_path, f"?s\t?p\t?o\n<x:a>\t<x:p>\t{double}\n"))
        assert db.objects[0].datatype.endswith("#double")


def test_a_table_with_another_separator_is_named_with_what_reads_it(tmp_path: Path) -> None:
    for separator in ";|":
        head, body = (
            separator.join(["head", "relation", "tail"]),
            separator.join(["007", "is", "NA"]),
        )
        path = put(tmp_path, f"{head}\n{body}\n", "facts.csv")
        with pytest.raises(DatabaseFormatError, match="has 1 cell") as refusal:
            load(path)
        assert texts(read_by_advice(refusal.value, path)) == {("007", "is", "NA")}


def test_tsv_that_was_quoted_as_csv_is_refused_with_what_reads_it(tmp_path: Path) -> None:
    names = "head\trelation\ttail\n"
    cases = {
        'Ann\tsaid\t"Hello, ""world"""\n': ("Ann", "said", 'Hello, "world"'),
        'Ann\tsaid\t"Hello,\nworld"\n': ("Ann", "said", "Hello,\nworld"),
        'NA\tsaid\t"a ""b""\tc"\n': ("NA", "said", 'a "b"\tc'),
        # each line has three cells
        'Ann\tsaid\t"Hello\na\tb\tworld"\n': ("Ann", "said", "Hello\na\tb\tworld"),
    }
    for text, fact in cases.items():
        path = put(tmp_path, names + text)
        with pytest.raises(DatabaseFormatError, match=r"line 2.*quoted as in CSV") as refusal:
            load(path)
        assert texts(read_by_advice(refusal.value, path)) == {fact}
    # as they stand, when the user says so, and where no cell closes the quote
    path = put(tmp_path, names + 'Ann\tsaid\t"the ""b"""\n')
    assert texts(load(path, table="long")) == {("Ann", "said", '"the ""b"""')}
    for cell in ('"b"', '"b', 'b"', '""', '"a" or "b"', "5' 3\""):
        row = ("Ann", "said", cell)
        assert texts(load(put(tmp_path, names + "\t".join(row) + "\n"))) == {row}
    # terms of RDF have their own quotes
    term = r'"a \"b"@en'
    db = load(
        put(tmp_path, f'?s\t?p\t?o\n<x:a>\t<x:p>\t{term}\n<x:a>\t<x:p>\t"b\\""\n'), multi="keep"
    )
    assert {token.text for token in db.objects} == {'a "b', 'b"'}


@pytest.mark.parametrize("separator", [",", "\t"])
def test_a_row_of_empty_cells_is_refused_and_blank_lines_are_none(
    separator: str, tmp_path: Path
) -> None:
    name = "facts.csv" if separator == "," else "facts.tsv"
    text = (FACTS + "\t\t\n").replace("\t", separator)
    with pytest.raises(
        DatabaseFormatError, match=r"line 3.*all cells of the row are empty.*Delete"
    ):
        load(put(tmp_path, text, name))
    assert ("", "", "") in texts(load(put(tmp_path, text, name), table="long"))
    assert load(put(tmp_path, FACTS.replace("\t", separator) + "\n\n", name)).n_facts == 2


def read_by_advice(refusal: DatabaseFormatError, path: Path) -> Database:
    call = re.search(r"pd\.read_csv\(.*?\)", str(refusal))
    assert call is not None
    return from_pandas(eval(call[0], {"pd": pd, "path": path}))


PEOPLE = "name,born,city\nBob,1980,Rome\nAnn,1990,Oslo\n"


def test_a_table_with_one_column_a_property_is_refused_and_read_on_request(tmp_path: Path) -> None:
    path = put(tmp_path, PEOPLE, "people.csv")
    with pytest.raises(
        DatabaseFormatError, match=r'column per property.*table="wide".*table="long"'
    ) as refusal:
        load(path)
    assert "columns=['name', 'born', 'city'] if the first row is a header" in str(refusal.value)
    # two people with two properties each
    assert texts(load(path, table="wide")) == {
        ("Bob", "born", "1980"), ("Bob", "city", "Rome"),
        ("Ann", "born", "1990"), ("Ann", "city", "Oslo"),
    }  # fmt: skip
    assert load(path, table="long").n_facts == 3
    # of more columns, and of two
    wider = put(tmp_path, PEOPLE.replace("\n", ",x\n"), "wider.csv")
    with pytest.raises(DatabaseFormatError, match=r'has 4 cells.*table="wide"'):
        load(wider)
    assert load(wider, table="wide").n_facts == 6
    narrow = put(tmp_path, "name,born\nBob,1980\n", "narrow.csv")
    with pytest.raises(DatabaseFormatError, match=r'has 2 cells.*table="wide"'):
        load(narrow)
    assert texts(load(narrow, table="wide")) == {("Bob", "born", "1980")}


def test_empty_cells_of_a_wide_table_are_no_facts(tmp_path: Path) -> None:
    path = put(tmp_path, "id,film,a,b\n1,Alien,,x\n2,Aliens,,\n3,Alien,y,\n", "films.csv")
    # the column of subjects is the first, or the first of `columns`
    assert texts(load(path, table="wide")) == {
        ("1", "film", "Alien"), ("1", "b", "x"), ("2", "film", "Aliens"),
        ("3", "film", "Alien"), ("3", "a", "y"),
    }  # fmt: skip
    by_film = load(path, table="wide", columns=["film", "b", "a"])
    assert texts(by_film) == {("Alien", "b", "x"), ("Alien", "a", "y")}
    assert load(path, table="wide", columns=[1, 3, 2]) == by_film
    frame = pd.read_csv(path, dtype=str)
    assert from_pandas(frame, table="wide") == load(path, table="wide")
    assert from_pandas(frame, table="wide", columns=["film", "b", "a"]) == by_film


def test_a_wide_table_may_hold_terms(tmp_path: Path) -> None:
    text = '"<x:s>"\t<x:p>\t<x:q>\n<x:a>\t<x:b>\t"c"@en\n'
    db = read_table(put(tmp_path, text), table="wide", terms="n3")
    assert db == parse_rdf('<x:a> <x:p> <x:b> ; <x:q> "c"@en .', "turtle")


def test_a_numbered_list_of_facts_is_named_with_what_reads_it(tmp_path: Path) -> None:
    path = put(tmp_path, "2\n0 1 0\n1 2 1\n", "train2id.txt")
    with pytest.raises(DatabaseFormatError, match="OpenKE") as refusal:
        load(path)
    advice = re.search(r"from_pandas\(.*\)", str(refusal.value))
    assert advice is not None
    names = {"from_pandas": from_pandas, "pd": pd, "FILE": path}
    # head, tail, relation
    assert texts(eval(advice[0].replace("capacity.database.", ""), names)) == {
        ("0", "0", "1"), ("1", "1", "2"),
    }  # fmt: skip


def test_weights_and_row_numbers_are_left_to_columns(tmp_path: Path) -> None:
    path = put(tmp_path, "Ann\tknows\tBob\t0.9\nBob\tknows\tCid\t0.4\n")
    with pytest.raises(DatabaseFormatError, match=r"has 4 cells.*`columns` chooses"):
        load(path)
    assert load(path, columns=[0, 1, 2]) == load(put(tmp_path, FACTS, "bare.tsv"))
    named = put(tmp_path, "id,head,relation,tail\n0,Ann,knows,Bob\n", "named.csv")
    with pytest.raises(DatabaseFormatError, match="columns=") as refusal:
        load(named)
    said = re.search(r"columns=(\[.*?\])", str(refusal.value))
    assert said is not None
    asked = [one.strip(" '") for one in said[1].strip("[]").split(",")]
    assert texts(load(named, columns=asked)) == {("Ann", "knows", "Bob")}
    # by their positions, too: the first row is certainly a header, unless it is said to be none
    assert texts(load(named, columns=[1, 2, 3])) == {("Ann", "knows", "Bob")}
    assert load(named, columns=[1, 2, 3], table="long").n_facts == 2
    # the order is the user's
    assert texts(load(named, columns=[3, 2, 1])) == {("Bob", "knows", "Ann")}
    # a header is one by all its cells
    weighted = put(tmp_path, "head,relation,tail,w\nAnn,knows,Bob,1\nBob,is,Cid,2\n", "w.csv")
    assert texts(load(weighted, columns=[0, 1, 3])) == {("Ann", "knows", "1"), ("Bob", "is", "2")}
    turned = put(tmp_path, "start,end,label\nAnn,Bob,knows\n", "turned.csv")
    assert load(turned) == load(turned, columns=[0, 2, 1])
    assert texts(load(turned)) == {("Ann", "knows", "Bob")}
    # what may be one is refused, and the names that the refusal says are those asked for
    unsure = put(tmp_path, "x,country,of,value\na,Chad,area,1\nb,Mali,area,2\n", "unsure.csv")
    advice = r"may be a fact: .*numbers below value.*table=\"long\".*columns=\['of', 'value'\]"
    with pytest.raises(DatabaseFormatError, match=advice):
        load(unsure, columns=[2, 3])
    assert load(unsure, columns=["country", "of", "value"]).n_facts == 2
    assert load(unsure, columns=[1, 2, 3], table="long").n_facts == 3
    sparql = put(tmp_path, "?n\t?s\t?p\t?o\n1\t<x:a>\t<x:p>\t7\n", "results.tsv")
    for columns in ([1, 2, 3], ["?s", "?p", "?o"]):
        seven = load(sparql, columns=columns).objects[0]
        assert (seven.kind, seven.text) == ("literal", "7")


# what stays a fact, and what is refused


@pytest.mark.parametrize(
    "text",
    [FACTS, "Ann\tknows\tBob\n", "head\tpart_of\tbody\nhand\tpart_of\tarm\n",
     "source\tof\triver\nmouth\tof\triver\n", "subject\tof\tverb\nAnn\tsays\tno\n",
     '"Ann"\tsays\thello\n', "<b>\tis\tmarkup\n", "?\t?\t?\n", "a\tb\t\n", "1\t2\t3\n4\t5\t6\n",
     "x\tp\tRome (<http://e/Rome>)\n", "Ann\ttype\tPerson\nBob\ttype\tCat\n",
     "Ann\tknows\tBob\nAnn\tage\t42\n", "0\t1\t2\n3\t1\t4\n", "x\tlabel\tA\ny\tis\tB\n",
     "a\tp\thttp://e/a\nb\tp\thttp://e/b\n", "1980\tis\tx\n1990\tis\t2\n"],
)  # fmt: skip
def test_facts_of_labels_stay_facts(text: str, tmp_path: Path) -> None:
    db = load(put(tmp_path, text))
    rows = {tuple(line.split("\t")) for line in text.splitlines()}
    assert texts(db) == rows
    assert {token.kind for token in db.tokens} == {"label"}


UNCERTAIN: dict[str, tuple[str, str]] = {
    "a header whose words are used below": (
        "head\trelation\ttail\nhead\tof\tbody\n", "may be a header and may be a fact",
    ),
    "two words of a header": ("head\trelation\tthing\nAnn\tknows\tBob\n", "may be a header"),
    "the word relation": ("a\trelation\tb\nAnn\tknows\tBob\n", "may be a header"),
    "numbers below a name": ("film\tyear\tby\nAlien\t1979\tScott\n", "one column per property"),
    "words over IRIs": (
        "item\tprop\tvalue\nhttp://e/a\thttp://e/p\thttp://e/b\nhttp://e/b\thttp://e/p\tx\n"
        "http://e/b\thttp://e/p\ty\n", "IRIs below item",
    ),
    "words over numbers": (
        "country\tindicator\tamount\nChad\tarea\t1284\nChad\tpeople\t17.7\n",
        "numbers below amount.*table=\"long\".*columns=\\['country', 'indicator', 'amount'\\]",
    ),
    "names of pandas": (
        "0\t1\t2\nAnn\tknows\tBob\nAnn\tage\t42\n", "pandas writes it.*columns=\\['0', '1', '2'\\]",
    ),
    "roles out of order": (
        "source\ttarget\trelation\nsource\tBob\tof\n",
        "columns=\\['source', 'relation', 'target'\\]",
    ),
    "terms and a label": (
        "<http://e/a>\t<http://e/p>\tb\n", "'b' isn't one.*table=\"long\"",
    ),
    "quotes around all": ('"Ann"\t"knows"\t"Bob"\n', "may be terms of RDF.*read_csv"),
}  # fmt: skip


@pytest.mark.parametrize("case", UNCERTAIN)
def test_what_can_be_read_in_two_ways_is_refused_with_both(case: str, tmp_path: Path) -> None:
    text, message = UNCERTAIN[case]
    path = put(tmp_path, text)
    with pytest.raises(DatabaseFormatError, match=message) as refusal:
        load(path)
    assert refusal.value.line == 1
    assert len(str(refusal.value)) < 500
    # a way to read each row as a fact
    rows = {tuple(line.split("\t")) for line in text.splitlines()}
    assert texts(load(path, table="long", columns=[0, 1, 2], multi="keep")) == rows
    if "header" in message:
        assert texts(load(path, table="long", multi="keep")) == rows


CELLS = st.sampled_from(
    ["subject", "predicate", "object", "head", "relation", "tail", "s", "p", "o", "?s", "?p", "?o",
     "Ann", "knows", "Bob", "1980", "2.5", "", "<http://e/a>", "<a>", '"x"', "_:b", '"c"@en', "."]
)  # fmt: skip


@given(rows=st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=4))
@settings(max_examples=examples(1000))
def test_each_row_is_a_fact_unless_it_is_a_header(
    rows: list[tuple[str, str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    # a file of nothing but tabs is empty
    assume(any(map("".join, rows)))
    text = "".join("\t".join(row) + "\n" for row in rows)
    path = put(tmp_path_factory.mktemp("tables"), text)
    # whatever the cells are, the options read them all as they stand
    assert texts(load(path, table="long", columns=[0, 1, 2], multi="keep")) == set(rows)
    try:
        db = load(path, multi="keep")
    except DatabaseFormatError:
        return
    header = find_header([(i, row) for i, row in enumerate(rows)], 3)
    assert header is not None
    below = [tuple(row[i] for i in header.order) for row in rows[header.rows :]]
    assert {token.kind for token in db.tokens} == {"label"} or all(
        cell.startswith(("<", '"', "_:")) or header.variables for row in below for cell in row
    )
    # as many distinct facts, with one for two spellings of a term at most
    assert db.n_facts <= len(set(below))
    if {token.kind for token in db.tokens} == {"label"}:
        assert texts(db) == set(below)


def test_the_words_of_headers_are_closed_and_never_stand_for_two_roles() -> None:
    assert role_order(("from", "property", "to")) == (0, 1, 2)
    assert role_order(("subject", "subject", "object")) is None
    assert role_order(("subject", "is", "object")) is None
    assert role_order(("o", "p", "s")) == (2, 1, 0)
    # letters of two conventions, of which t may be a tail and o an object
    assert role_order(("s", "r", "o")) is None


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown form": ({"table": "broad"}, "`table` must be"),
    "terms that are labels": ({"table": "n3", "terms": "label"}, "Pass one of them"),
    "a wide table of four columns": ({"table": "wide", "arity": 4}, "must be triples|must be 3"),
    "a position beyond the last": ({"columns": [0, 1, 9]}, "counts from 0 to 2"),
    "a position before the first": ({"columns": [0, 1, -1]}, "counts from 0 to 2"),
    "a truth": ({"columns": [0, 1, True]}, "must list"),
    "a column of subjects alone": ({"table": "wide", "columns": [0]}, "must list from 2"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_options_of_tables_are_refused(case: str, tmp_path: Path) -> None:
    options, message = WRONG[case]
    path = put(tmp_path, FACTS)
    with pytest.raises(CapacityError, match=message):
        read_table(path, **options)
    options.pop("terms", None)


def test_rdf_has_no_options_of_tables() -> None:
    for options in ({"table": "wide"}, {"columns": [0, 1, 2]}):
        name = next(iter(options))
        with pytest.raises(DatabaseFormatError, match=f"`{name}` is an option of tables"):
            load(EXAMPLES / "figure-1.ttl", **options)  # type: ignore[arg-type]


def test_a_wide_table_names_each_property_and_each_subject(tmp_path: Path) -> None:
    cases = {
        "name,born,born\nBob,1,2\n": "name each property in words, and each once",
        "name,born,\nBob,1,2\n": "name each property in words",
        "name,born\n,1\n": "line 2.*the subject, in the first column, must not be empty",
        "name\nBob\n": "must have a column of subjects and others",
        "name,born\nBob,\n": "no rows",
    }
    for text, message in cases.items():
        with pytest.raises(DatabaseFormatError, match=message):
            load(put(tmp_path, text, "people.csv"), table="wide")
    numbered = pd.DataFrame([["Bob", "1980", "Rome"]])
    with pytest.raises(DatabaseFormatError, match="in words"):
        from_pandas(numbered, table="wide")


def test_frames_are_read_by_names_and_never_by_places_under_other_names() -> None:
    frame = pd.DataFrame([["Bob", "Ann", "knows"]], columns=pd.Index([2, 0, 1]))
    # the columns named 0, 1 and 2, wherever they are
    assert texts(from_pandas(frame, columns=[0, 1, 2])) == {("Ann", "knows", "Bob")}
    with pytest.raises(InvalidArgumentError, match="must have the columns 0, 1"):
        from_pandas(pd.DataFrame([["a", "b"]], columns=pd.Index(["x", "y"])), columns=[0, 1])
    with pytest.raises(DatabaseFormatError, match="one column per property"):
        from_pandas(pd.DataFrame([["Bob", "1980", "Rome"]], columns=["name", "born", "city"]))


# Parquet


def test_parquet_of_other_programs_is_read_by_its_columns(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"tail": ["Bob", "Cid"], "n": [1, 2], "head": ["Ann", "Bob"], "relation": ["knows"] * 2}
    )
    path = tmp_path / "facts.parquet"
    expected = load(put(tmp_path, FACTS))
    frame.drop(columns="n").to_parquet(path)
    assert load(path) == expected
    frame.drop(columns="n").astype("category").to_parquet(path)
    assert load(path) == expected
    frame.to_parquet(path)
    with pytest.raises(DatabaseFormatError, match=r"columns=\['head', 'relation', 'tail'\]"):
        load(path)
    assert load(path, columns=["head", "relation", "tail"]) == expected
    frame.rename(columns={"head": "subject", "relation": "predicate", "tail": "object"}).to_parquet(
        path
    )
    assert load(path) == expected
    # whatever its name is
    assert load(path.rename(tmp_path / "facts.ttl")) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([7, -3, 2**62]), ("7", "-3", str(2**62))),
        (pa.array([1, 2**64 - 1, 0], pa.uint64()), ("1", str(2**64 - 1), "0")),
        (pa.array([1980.0, 2.5, 1e16]), ("1980", "2.5", "10000000000000000")),
        (pa.array([0.5, 1.0, 0.1], pa.float32()), ("0.5", "1", "0.1")),
        (pa.array([0.5, 1.0, 0.1], pa.float16()), ("0.5", "1", "0.1")),
        (pa.array([0.0, -0.0, 1.0]), ("0", "0", "1")),
        (pa.array([True, False, True]), ("True", "False", "True")),
        (pa.array([date(2020, 1, 2), date(1, 1, 1), date(9999, 12, 31)]), None),
        (pa.array([date(2020, 1, 2), date(1, 1, 1), date(1969, 12, 31)], pa.date64()), None),
        (pa.array([Decimal("1.10"), Decimal("0.00"), Decimal("-2.25")]), None),
        (pa.array([Decimal("1.10"), Decimal("0.00"), None], pa.decimal32(5, 2))[:2], None),
        (pa.array([3, 3, 5]).dictionary_encode(), ("3", "3", "5")),
    ],
    ids=lambda given: str(given.type) if isinstance(given, pa.Array) else "",
)
def test_numbers_in_parquet_have_the_text_that_they_have_in_a_table_of_arrow(
    values: Any, expected: tuple[str, ...] | None, tmp_path: Path
) -> None:
    names = ["a", "b", "c"][: len(values)]
    table = pa.table({"subject": names, "predicate": ["p"] * len(values), "object": values})
    path = tmp_path / "facts.parquet"
    forms: list[dict[str, Any]] = [{}, {"use_dictionary": False}, {"data_page_version": "2.0"}]
    for options in forms:
        pq.write_table(table, path, **options)
        found = load(path)
        assert found == from_arrow(table)
        counts = replace(count_duckdb(path), source="", notes=())
        assert counts == recount("", facts_of(found))
        said = {(str(s), str(o)) for s, _, o in found}
        assert expected is None or said == set(zip("abc", expected, strict=True))


def test_a_number_that_is_none_is_missing_in_parquet(tmp_path: Path) -> None:
    path = tmp_path / "facts.parquet"
    pq.write_table(pa.table({"name": ["a", "b"], "born": [1980.0, math.nan]}), path)
    assert texts(load(path, table="wide")) == {("a", "born", "1980")}
    counts = replace(count_duckdb(path, table="wide"), source="", notes=())
    assert counts == recount("", facts_of(load(path, table="wide")))
    pq.write_table(pa.table({"s": ["a", "b"], "p": ["p", "p"], "o": [1.0, math.nan]}), path)
    with pytest.raises(DatabaseFormatError, match=r"line 2 .*a cell is missing"):
        load(path)
    late = pa.table({"s": ["a"], "p": ["p"], "o": pa.array([2**30], pa.int32()).view(pa.date32())})
    pq.write_table(late, path)
    for read in (load, count_duckdb):
        with pytest.raises(DatabaseFormatError, match="outside the years 1 to 9999"):
            read(path)


def test_parquet_that_holds_no_facts_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "facts.parquet"

    def refused(frame: pd.DataFrame, message: str, **options: Any) -> None:
        frame.to_parquet(path)
        with pytest.raises(DatabaseFormatError, match=message):
            load(path, **options)

    names = ["subject", "predicate", "object"]
    refused(
        pd.DataFrame([["a", "p", [1]]], columns=names),
        "must hold text, numbers, truth values or days; 'object' is of type list<",
    )
    moments = pd.DataFrame([["a", "p", pd.Timestamp("2020-01-01 10:30")]], columns=names)
    refused(moments, "'object' is of type timestamp")
    refused(pd.DataFrame([["a", "p", None]], columns=names), r"a cell is missing.*table=\"wide\"")
    refused(pd.DataFrame([["a", "p"]], columns=names[:2]), "must have the columns subject")
    refused(pd.DataFrame([["a", "p", "x"]], columns=names), "to 2", columns=[0, 1, 3])
    refused(pd.DataFrame([], columns=names, dtype=str), "no rows")
    wide = pd.DataFrame([["Bob", "1980", None]], columns=["name", "born", "city"])
    refused(wide, r"a cell is missing.*table=\"wide\"")
    assert texts(load(path, table="wide")) == {("Bob", "born", "1980")}
    good = path.read_bytes()
    for broken, message in (
        (good[:-9], "a Parquet file that is cut off"),
        (good[:4] + b"\0" * (len(good) - 12) + good[-8:], "can't be read as Parquet|cut off"),
    ):
        path.write_bytes(broken)
        with pytest.raises(DatabaseFormatError, match=message):
            load(path)
    path.write_bytes(good)
    with pytest.raises(DatabaseFormatError, match="it is Parquet, and not csv"):
        load(path, format="csv")
    with pytest.raises(DatabaseFormatError, match="doesn't begin and end as Parquet does"):
        load(put(tmp_path, FACTS), format="parquet")


def test_damaged_parquet_is_read_as_written_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "facts.parquet"
    rows = [(f"a{i % 7}", f"p{i % 3}", f"x{i}") for i in range(60)]
    db = Database.from_triples(rows, multi="keep")
    write(db, path)
    whole, draw = path.read_bytes(), random.Random(0)
    refused: list[str] = []
    for _ in range(500):
        damaged = bytearray(whole)
        for _ in range(draw.choice([1, 2, 16])):
            damaged[draw.randrange(4, len(damaged) - 8)] ^= 1 << draw.randrange(8)
        try:
            again = load(io.BytesIO(damaged), multi="keep")
        except DatabaseFormatError as error:
            refused.append(str(error))
        else:
            # a name, a note or an encoding that no one reads: each page has a checksum
            assert texts(again) == set(rows)
    assert len(refused) > 300
    assert not any("\n" in message for message in refused)


def test_a_label_may_look_like_the_beginning_of_parquet(tmp_path: Path) -> None:
    assert texts(load(put(tmp_path, "PAR1\tis\tPAR1\n"))) == {("PAR1", "is", "PAR1")}
    assert label("PAR1") in load(put(tmp_path, "PAR1,is,magic\n", "facts.csv")).tokens
