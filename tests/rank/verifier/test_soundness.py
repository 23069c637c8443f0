"""Doors through which something false could come: dtypes, kinds, modes of Python, JSON."""

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest

from capacity.database import Database, write_tsv
from capacity.errors import CertificateError, MemoryBudgetError
from capacity.rank import (
    AlgebraicDecomposition,
    Boxes,
    Certificate,
    Decomposition,
    Enclosure,
    Koszul,
    Pencil,
    Substitution,
    Unfolding,
    View,
    load_certificates,
    rank_interval,
    save_certificates,
)
from capacity.rank.verifier.argument import FromAbove, FromBelow
from capacity.rank.verifier.checker import verify
from capacity.rank.verifier.kinds import KINDS
from tests.oracles import database, figure_1
from tests.second_checker import claim

NONE = np.zeros(0, np.int64)
ONE = np.array([0])
VIEW = View((ONE, ONE, ONE))


def few(values: Any, bits: Any) -> Any:
    """Integers in an array of another type than the one that is promised."""
    return np.array(values, bits)


def a_fact_twice() -> tuple[Database, Unfolding, Unfolding]:
    """Facts of rank 19, a minor of 19, and one of a fact in it, whose column needs 16 bits.

    Of the subjects 0 ... 19 each has a fact of its own, but 13 has that of 12. 13 * 19 + 9 = 256 is
    0 in 8 bits: the place of the fact (0, 0, 0).
    """
    facts = [(i, i, i) for i in range(20) if i != 13] + [(13, 12, 12)]
    db = Database.from_triples([(f"s{a:02}", f"p{b:02}", f"o{c:02}") for a, b, c in facts])
    assert db.shape[2] == 19
    of = {k: (q, v) for k, q, v in db.triples.tolist()}
    rows = np.array([k for k in range(20) if k != 13])
    whole = Unfolding(0, rows, np.array([of[k] for k in rows.tolist()]), NONE, NONE, 2)
    return db, whole, Unfolding(1, ONE, few([[13, 9]], np.int8), NONE, NONE, 2)


def test_indices_of_eight_bits_prove_what_they_say_and_nothing_else() -> None:
    db, whole, again = a_fact_twice()
    assert str(rank_interval(db)) == "[19, 19]"
    false = claim(db, whole, again)
    assert false.value == 20
    assert verify(false, db).reason == verify(through_json(false), db).reason
    assert not verify(false, db).proved
    # the same indices in few bits are the same indices
    small = replace(whole, rows=whole.rows.astype(np.int8), columns=whole.columns.astype(np.uint8))
    assert verify(claim(db, small), db).proved


@pytest.mark.slow
def test_indices_of_32_bits_do_not_wrap_in_a_large_database() -> None:
    # a product of two sizes passes 2^32; the column (61361, 47301) is (5, 5) modulo that
    n = 70_000
    db = Database.from_triples([(f"s{i:05}", f"p{i:05}", f"o{i:05}") for i in range(n)])
    a, b = divmod(5 * n + 5 + 2**32, n)
    minor = Unfolding(0, np.array([5]), few([[a, b]], np.int32), NONE, NONE, 2)
    assert verify(claim(db, minor), db).reason == "a pivot is zero"


def test_a_view_of_an_enclosure_in_few_bits_is_checked_as_it_reads() -> None:
    db = database([(i, i, i) for i in range(20)])
    one = np.ones((1, 1))
    for bits in (np.int8, np.uint8, np.int32, np.int64):
        first = few([0], bits)
        near = Enclosure(View((first, first, first)), (one, one, one), first, 1e-9)
        rest = Boxes(few([-1, *range(19)], np.int8))
        assert verify(claim(db, near, rest, side="upper"), db).proved
        # (12, 16) is 12 * 20 + 16 = 256, and no other name for the fiber (0, 0)
        both = replace(near, fibers=few([[12, 16], [0, 0]], bits), varying=few([0], bits))
        same = replace(near, fibers=few([[0, 0], [0, 0]], bits))
        assert "fibers must be different" not in str(verify(claim(db, both, side="upper"), db))
        assert "fibers must be different" in str(verify(claim(db, same, side="upper"), db))


@pytest.mark.parametrize("wrong", [np.array([0.0]), np.array([False]), np.array([0], object),
                                   np.array(["0"]), [0], None, np.array([2**63], np.uint64),
                                   np.array([[0]]), np.array([0j])])  # fmt: skip
def test_arrays_of_anything_but_integers_are_refused(wrong: Any) -> None:
    db = database([(0, 0, 0)])
    good = Unfolding(0, ONE, np.array([[0, 0]]), NONE, NONE, 2)
    assert verify(claim(db, good), db).proved
    box = Boxes(ONE)
    one = np.ones((1, 1))
    cases: list[tuple[Any, str]] = [
        (replace(good, rows=wrong), "lower"),
        (replace(good, blocks=wrong), "lower"),
        (replace(good, eliminated=wrong), "lower"),
        (Substitution(View((wrong, ONE, ONE)), np.array([[0, 0]])), "lower"),
        (Pencil(0, wrong, 1), "lower"),
        (Enclosure(VIEW, (one, one, one), wrong, 1e-9), "upper"),
        (replace(box, box=wrong), "upper"),
    ]
    for argument, side in cases:
        value = 1 if isinstance(argument, Boxes) or argument.kind == "unfolding" else argument.value
        said = Certificate("rank", side, value, "", (argument,), db.facts_sha256, db.multi)  # type: ignore[arg-type]
        assert not verify(said, db).proved, argument


@pytest.mark.parametrize("wrong", [1.0, True, "1", None, np.float64(1), np.True_, 1 + 0j])
def test_values_are_integers(wrong: Any) -> None:
    db = database([(0, 0, 0), (0, 1, 1)])
    good = Koszul(View((ONE, np.arange(2), np.arange(2))), 0, 0, 2, 2)
    assert verify(claim(db, good), db).proved
    for name in ("mode", "p", "prime", "value"):
        bad = replace(good, **{name: wrong})
        said = replace(claim(db, good), arguments=(bad,))
        assert not verify(said, db).proved
    with pytest.raises(CertificateError, match="`value` of a certificate must be of type int"):
        verify(replace(claim(db, good), value=wrong), db)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("quantity", "border_rank"), ("quantity", None), ("side", "both"), ("side", ["lower"])],
)
def test_a_certificate_is_of_a_known_quantity_and_side(name: str, wrong: Any) -> None:
    db = database([(0, 0, 0)])
    good = claim(db, Boxes(ONE), side="upper")
    with pytest.raises(CertificateError, match=f"`{name}` of a certificate must be one of"):
        verify(replace(good, **{name: wrong}), db)


def test_a_basis_without_rows_is_refused_in_words() -> None:
    db = database([(0, 0, 0)])
    view = View((ONE, ONE, ONE), (np.zeros((0, 1), np.int64), None, None))
    verdict = verify(claim(db, Substitution(view, np.zeros((0, 2), np.int64))), db)
    assert verdict.reason is not None
    assert "must have rows" in verdict.reason
    data = claim(db, Substitution(VIEW, np.array([[0, 0]]))).to_dict()
    data["arguments"][0]["bases"][0] = []
    with pytest.raises(CertificateError, match="at least one row"):
        Certificate.from_dict(data)


class Short(tuple[Any, ...]):
    """A tuple that says it has one element."""

    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize("where", ["terms", "term", "vector", "indices"])
def test_what_a_tuple_says_of_its_length_is_not_believed(where: str) -> None:
    # W = e1 e0 e0 + e0 e1 e0 + e0 e0 e1, of rank 3
    db = database([(1, 0, 0), (0, 1, 0), (0, 0, 1)])
    made = {name: Short if name == where else tuple for name in ("terms", "term", "vector")}
    one = (Fraction(1),)
    terms = made["terms"](
        made["term"](
            made["vector"](((Short if where == "indices" else tuple)([int(m == k)]), one))
            for m in range(3)
        )
        for k in range(3)
    )
    field = tuple((i, ((Fraction(1),),)) for i, _ in terms[0])
    lying: tuple[Any, ...] = (
        Decomposition(terms),
        AlgebraicDecomposition((-2, 0, 1), Fraction(1), Fraction(2), Short((field,) * 3)),
    )
    for argument in lying:
        said = Certificate("rank", "upper", 1, "", (argument,), db.facts_sha256, db.multi)
        assert not verify(said, db).proved


def test_what_an_argument_says_of_its_own_fields_is_not_believed() -> None:
    db, whole, again = a_fact_twice()
    for forms in ({}, {"mode": "integer"}, None):
        object.__setattr__(again, "forms", forms)
        assert not verify(claim(db, whole, again), db).proved


@pytest.mark.parametrize(
    "make",
    [
        lambda: Pencil(0, few([0, 1], np.int64), 10**5000),
        lambda: Koszul(VIEW, 0, 10**5000, 2, 1),
        lambda: Koszul(VIEW, 0, 0, -(10**5000), 1),
        lambda: Substitution(View(5), few([[0, 0]], np.int64)),  # type: ignore[arg-type]
        lambda: Substitution(View((ONE, ONE, ONE), 5), few([[0, 0]], np.int64)),  # type: ignore[arg-type]
        lambda: Pencil.__new__(Pencil),
        lambda: Boxes(np.broadcast_to(np.int64(0), 10**12)),
    ],
)
def test_odd_objects_are_refused_in_words(make: Any) -> None:
    db = database([(0, 0, 0), (1, 0, 0)])
    said = Certificate("rank", "upper", 1, "", (make(),), db.facts_sha256, db.multi)
    for side in ("upper", "lower"):
        try:
            proved = verify(replace(said, side=side), db).proved  # type: ignore[arg-type]
        except MemoryBudgetError as error:
            assert "too costly to check" in str(error)  # noqa: PT017 - one of two right ends
        else:
            assert not proved


@pytest.mark.parametrize("name", ["facts_sha256", "multi", "value"])
def test_the_fields_of_a_certificate_have_their_types(name: str) -> None:
    db = database([(0, 0, 0)])
    wrongs: tuple[Any, ...] = (10**5000, np.array(["a", "b"]), 1.5, b"x")
    for wrong in wrongs:
        said = replace(claim(db, Boxes(ONE), side="upper"), **{name: wrong})
        with pytest.raises(CertificateError, match=f"`{name}` of a certificate must be"):
            verify(said, db)


# ---- kinds --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Wished:
    """A kind that says its value, and that nothing checks."""

    kind: ClassVar = "wished"
    sides: ClassVar = ("lower", "upper")
    forms: ClassVar = {}
    value: int = 999


class Larger(Boxes):
    """A kind that says another value than the one it derives from."""

    @property
    def value(self) -> int:
        return 0


@pytest.mark.parametrize("side", ["lower", "upper"])
@pytest.mark.parametrize("argument", [Wished(), Larger(ONE), object(), None])
def test_a_kind_without_a_checker_is_refused(side: Any, argument: Any) -> None:
    db = database([(0, 0, 0)])
    for arguments in ((argument,), (Boxes(ONE), argument)):
        said = Certificate("rank", side, 999, "hope", arguments, db.facts_sha256, db.multi)
        with pytest.raises(CertificateError, match="a checker is registered for"):
            verify(said, db)


def test_every_kind_has_a_checker_on_each_of_its_sides() -> None:
    for kind in KINDS.values():
        below = not issubclass(kind.argument, FromAbove)
        above = not issubclass(kind.argument, FromBelow)
        assert (kind.lower is not None, kind.upper is not None) == (below, above)


WITHOUT_ASSERTS = """
import sys
import numpy as np
from capacity.errors import CertificateError, MemoryBudgetError
from capacity.rank import Certificate, load_certificates
from capacity.rank.verifier.checker import verify
from capacity.database import load
from tests.rank.verifier.test_soundness import Wished, a_fact_twice
from tests.second_checker import claim

if __debug__:
    raise SystemExit("not run with -O")
refused = 0
db, whole, again = a_fact_twice()
for side in ("lower", "upper"):
    try:
        verify(Certificate("rank", side, 999, "", (Wished(),), db.facts_sha256, db.multi), db)
    except CertificateError:
        refused += 1
if verify(claim(db, whole, again), db).proved:
    raise SystemExit("eight bits prove 20")
facts = load(sys.argv[2], multi="keep")
for certificate in load_certificates(sys.argv[1]):
    if not verify(certificate, facts).proved:
        raise SystemExit("what is true isn't proved")
    better = certificate.value + (1 if certificate.side == "lower" else -1)
    data = certificate.to_dict() | {"value": better}
    if verify(Certificate.from_dict(data), facts).proved:
        raise SystemExit("a better value is proved")
    refused += 1
    data = certificate.to_dict()
    for argument in data["arguments"]:
        for name in ("rows", "removals", "box"):
            if argument.get(name):
                argument[name][0] = argument[name][-1]
    if data != certificate.to_dict() and verify(Certificate.from_dict(data), facts).proved:
        raise SystemExit("a tampered certificate is proved")
print(refused)
"""


@pytest.mark.slow
def test_nothing_rests_on_asserts(tmp_path: Any) -> None:
    db = figure_1()
    write_tsv(db, tmp_path / "facts.tsv")
    interval = rank_interval(db)
    save_certificates(interval, tmp_path / "c.json")
    done = subprocess.run(
        [sys.executable, "-O", "-c", WITHOUT_ASSERTS, tmp_path / "c.json", tmp_path / "facts.tsv"],
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "4\n"), done.stderr


# ---- JSON ---------------------------------------------------------------------------------------


def through_json(certificate: Certificate) -> Certificate:
    return Certificate.from_dict(json.loads(json.dumps(certificate.to_dict())))


def test_a_key_that_comes_twice_is_refused(tmp_path: Any) -> None:
    db = database([(0, 0, 0)])
    path = tmp_path / "c.json"
    save_certificates([claim(db, Boxes(ONE), side="upper")], path)
    assert len(load_certificates(path)) == 1
    text = path.read_text()
    twice = {'"value": 1': '"value": 0, "value": 1', '"box": [0]': '"box": [], "box": [0]'}
    for old, new in twice.items():
        assert old in text
        path.write_text(text.replace(old, new))
        with pytest.raises(CertificateError, match="comes twice"):
            load_certificates(path)


def test_digits_are_those_of_ascii() -> None:
    db = database([(0, 0, 0)])
    one = [[0], ["1"]]
    good = {**claim(db, Boxes(ONE), side="upper").to_dict(),
            "arguments": [{"kind": "decomposition", "terms": [[one, one, one]]}]}  # fmt: skip
    assert verify(Certificate.from_dict(good), db).proved
    for digits in ("\u0661", "\uff11", "1/\u0661", "\u00b9"):
        good["arguments"][0]["terms"][0][0] = [[0], [digits]]
        with pytest.raises(CertificateError, match="must be a fraction"):
            Certificate.from_dict(good)


@pytest.mark.parametrize("name", ["kind", "side", "quantity", "format"])
def test_what_is_echoed_of_a_wrong_value_is_short(name: str) -> None:
    db = database([(0, 0, 0)])
    data = claim(db, Boxes(ONE), side="upper").to_dict()
    for wrong in ("x" * 5_000_000, [[]] * 100_000, 10**5_000):
        (data["arguments"][0] if name == "kind" else data)[name] = wrong
        with pytest.raises(CertificateError) as error:
            Certificate.from_dict(data)
        # all kinds are named
        assert len(str(error.value)) < 450


def test_terms_in_memory_are_fractions_and_integers() -> None:
    from fractions import Fraction

    db = database([(0, 0, 0)])
    one = ((0,), (Fraction(1),))
    assert verify(claim(db, Decomposition(((one, one, one),)), side="upper"), db).proved
    for bad in (((0,), (1.0,)), ((0,), (True,)), ((False,), (Fraction(1),)), ([0], [Fraction(1)]),
                ((0.0,), (Fraction(1),)), (0, 1), None):  # fmt: skip
        wrong: Any = ((bad, one, one),)
        assert not verify(claim(db, Decomposition(wrong), side="upper"), db).proved
