"""Certificates are checked, and checked again by a second, slower checker written here."""

import copy
import itertools
import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database
from capacity.errors import CertificateError
from capacity.rank import (
    Boxes,
    Certificate,
    Decomposition,
    Substitution,
    Unfolding,
    effective_rank_interval,
    load_certificates,
    rank_interval,
    save_certificates,
)
from capacity.rank.verify import verify
from capacity.testing import databases
from tests.oracles import FIGURE_1, KNOWN_RANKS, database, example_2_4, figure_1

# ---- the second checker: dense, in fractions, and as plain as it can be -------------------------


def rational_rank(matrix: list[list[Fraction]]) -> int:
    rows, rank = [row[:] for row in matrix], 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for i in range(rank + 1, len(rows)):
            factor = rows[i][column] / rows[rank][column]
            rows[i] = [x - factor * y for x, y in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank


def second_checker(certificate: Certificate, db: Database) -> bool:
    """Whether the arguments prove the value, by definitions alone."""
    if (certificate.facts_sha256, certificate.multi) != (db.facts_sha256, db.multi):
        return False
    D = db.to_numpy().astype(int)
    observed = np.asarray(D.any(axis=2))
    effective = certificate.quantity == "effective_rank"
    if certificate.value != sum(a.value for a in certificate.arguments):
        return False
    try:
        if certificate.side == "upper":
            return _adds_up(certificate, db, D, observed, effective)
        if effective and len(certificate.arguments) > 1:
            return False
        touched = [_proves_lower(a, D, observed, effective) for a in certificate.arguments]
    except IndexError:
        return False
    if any(t is None for t in touched):
        return False
    names = _component_names(db)
    parts = [{names[vertex] for vertex in t or ()} for t in touched]
    meeting = [p for p in itertools.combinations(range(len(parts)), 2) if parts[p[0]] & parts[p[1]]]
    if len({i for pair in meeting for i in pair}) < 2 * len(meeting):
        return False  # an argument meets two others
    pairs = [(certificate.arguments[i], certificate.arguments[j], touched[j]) for i, j in meeting]
    return all(
        isinstance(first, Unfolding)
        and isinstance(second, Unfolding)
        and _vanishes(first, indices or set(), D)
        for first, second, indices in pairs
    )


def _vanishes(first: Unfolding, later: set[tuple[int, int]], D: np.ndarray) -> bool:
    """Whether what is removed first is zero at, and no index of, what the later one is about."""
    sides = [sorted(x for m, x in later if m == mode) for mode in range(3)]
    removed = first.rows.tolist()
    if set(removed) & set(sides[first.mode]):
        return False
    sides[first.mode] = removed
    return not D[np.ix_(*sides)].any()


def _component_names(db: Database) -> dict[tuple[int, int], int]:
    name = {(m, i): 100 * m + i for m in range(3) for i in range(db.shape[m])}
    for _ in range(sum(db.shape)):
        for row in db.triples.tolist():
            least = min(name[m, i] for m, i in enumerate(row))
            name |= dict.fromkeys(enumerate(row), least)
    return name


def _proves_lower(
    argument: Any, D: np.ndarray, observed: np.ndarray, effective: bool
) -> set[tuple[int, int]] | None:
    if isinstance(argument, Unfolding):
        if argument.mode not in (0, 1, 2) or (effective and argument.mode != 2):
            return None
        others = [m for m in range(3) if m != argument.mode]
        T = np.moveaxis(D, argument.mode, 0)
        rows, columns = argument.rows.tolist(), [tuple(c) for c in argument.columns.tolist()]
        if len(set(rows)) < len(rows) or len(set(columns)) != len(columns) or not rows:
            return None
        if len(rows) != len(columns):
            return None
        minor = [[Fraction(int(T[i, a, b])) for a, b in columns] for i in rows]
        if rational_rank(minor) < len(rows):
            return None
        return {(argument.mode, i) for i in rows} | {
            (others[s], c[s]) for c in columns for s in (0, 1)
        }
    assert isinstance(argument, Substitution)
    state: dict[tuple[int, ...], int | None] = {
        place: None if effective and not observed[place[0], place[1]] else int(D[place])
        for place in np.ndindex(*D.shape)
    }
    for mode, index in argument.moves.tolist():
        if mode not in (0, 1, 2):
            return None
        mine = {p: x for p, x in state.items() if p[mode] == index}
        if not any(x for x in mine.values()):
            return None
        state = {p: x for p, x in state.items() if p[mode] != index}
        for p in state:
            across = mine[(*p[:mode], index, *p[mode + 1 :])]
            if across is None or across != 0:
                state[p] = None
    return {(m, i) for m, i in argument.moves.tolist()}


def _adds_up(
    certificate: Certificate, db: Database, D: np.ndarray, observed: np.ndarray, effective: bool
) -> bool:
    total = np.full(D.shape, Fraction(0), dtype=object)
    for argument in certificate.arguments:
        if isinstance(argument, Decomposition):
            for term in argument.terms:
                vectors = []
                for (indices, values), n in zip(term, D.shape, strict=True):
                    dense = np.full(n, Fraction(0), dtype=object)
                    for i, x in zip(indices, values, strict=True):
                        if i < 0:
                            return False
                        dense[i] += x
                    vectors.append(dense)
                total = total + np.einsum("i,j,k->ijk", *vectors)
        else:
            assert isinstance(argument, Boxes)
            if len(argument.box) != db.n_triples:
                return False
            for number in set(argument.box[argument.box >= 0].tolist()):
                mine = db.triples[argument.box == number]
                indicators = [np.isin(np.arange(n), mine[:, m]) for m, n in enumerate(D.shape)]
                total = total + np.einsum("i,j,k->ijk", *(x.astype(int) for x in indicators))
    same = total == D
    return bool(same[observed].all() if effective else same.all())


# ---- what is found is proved --------------------------------------------------------------------


def certificates_of(db: Database) -> list[Certificate]:
    intervals = (rank_interval(db), effective_rank_interval(db))
    return [end for interval in intervals for end in (interval.lower, interval.upper)]


def through_json(certificate: Certificate) -> Certificate:
    return Certificate.from_dict(json.loads(json.dumps(certificate.to_dict())))


@given(databases())
@settings(max_examples=1000)
def test_what_is_found_is_proved_after_json_by_both_checkers(db: Database) -> None:
    for certificate in certificates_of(db):
        again = through_json(certificate)
        assert again.to_dict() == certificate.to_dict()
        assert verify(again, db).reason is None
        assert second_checker(again, db)


@pytest.mark.parametrize("name", KNOWN_RANKS)
def test_known_ranks_lie_in_proved_intervals(name: str) -> None:
    make, rank = KNOWN_RANKS[name]
    db = make()
    interval = rank_interval(db)
    assert rank in interval
    for end in (interval.lower, interval.upper):
        assert verify(end, db).proved


# ---- what is damaged is not ---------------------------------------------------------------------


def numbers_in(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of all numbers and lists within JSON data."""
    if isinstance(data, dict):
        return [p for key, x in data.items() for p in numbers_in(x, (*path, key))]
    if isinstance(data, list):
        return [path, *(p for i, x in enumerate(data) for p in numbers_in(x, (*path, i)))]
    return [path] if isinstance(data, int) else []


def edited(data: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """One to three random edits: numbers changed, lists cut, swapped or repeated."""
    data = copy.deepcopy(data)
    for _ in range(rng.randint(1, 3)):
        paths = [p for p in numbers_in(data) if p]
        path = rng.choice(paths)
        holder = data
        for step in path[:-1]:
            holder = holder[step]
        value = holder[path[-1]]
        if isinstance(value, int):
            holder[path[-1]] = value + rng.choice([-2, -1, 1, 2])
        elif value:
            i, j = rng.randrange(len(value)), rng.randrange(len(value))
            kind = rng.choice(["cut", "swap", "repeat"])
            if kind == "cut":
                del value[i]
            elif kind == "swap":
                value[i], value[j] = value[j], value[i]
            else:
                value.append(copy.deepcopy(value[i]))
    return data


def test_random_edits_are_accepted_only_if_they_still_prove_their_claim() -> None:
    rng = random.Random(0)
    dbs = [make() for make, _ in KNOWN_RANKS.values()] + [
        database([(0, 0, 0), (0, 1, 1), (1, 0, 1), (2, 2, 2), (3, 2, 3)])
    ]
    tried = accepted = 0
    while tried < 1000:
        db = rng.choice(dbs)
        certificate = rng.choice(certificates_of(db))
        data = edited(certificate.to_dict(), rng)
        if data == certificate.to_dict():
            continue
        tried += 1
        try:
            damaged = Certificate.from_dict(data)
            proved = verify(damaged, db).proved
        except CertificateError:
            continue
        # whatever passes must be true by definitions alone
        if proved:
            accepted += 1
            assert second_checker(damaged, db), data
    # some edits do no harm (two moves that commute, boxes renumbered), most do
    assert 0 < accepted < 500


def test_other_facts_and_other_policies_are_refused() -> None:
    certificate = rank_interval(figure_1()).lower
    with pytest.raises(CertificateError, match="must be for these facts"):
        verify(certificate, example_2_4())
    same = Database.from_ids(figure_1().tokens, figure_1().token_triples, multi="first")
    with pytest.raises(CertificateError, match="with multi=first; it is for"):
        verify(certificate, same)


@given(databases(), databases(), st.booleans())
@settings(max_examples=50)
def test_arguments_about_other_facts_prove_nothing_false(
    a: Database, b: Database, effective: bool
) -> None:
    # the arguments of a under the name of b: accepted only where they hold for b as well
    find = effective_rank_interval if effective else rank_interval
    for end in (find(a).lower, find(a).upper):
        data = {**end.to_dict(), "facts_sha256": b.facts_sha256, "multi": b.multi}
        moved = Certificate.from_dict(data)
        if verify(moved, b).proved:
            assert second_checker(moved, b)


def claim(
    db: Database, *arguments: Any, quantity: Any = "rank", side: Any = "lower"
) -> Certificate:
    value = sum(a.value for a in arguments)
    return Certificate(quantity, side, value, "hand", arguments, db.facts_sha256, db.multi)


def test_the_failing_step_is_named() -> None:
    db = figure_1()
    moves = np.array([[0, 0], [0, 0]])
    verdict = verify(claim(db, Substitution(moves)), db)
    assert verdict.reason == "move 1, slice 0 of mode 0: it was removed before"
    box = Boxes(np.zeros(8, np.int64))
    reason = verify(claim(db, box, side="upper"), db).reason
    # five subjects x three predicates x four objects
    assert reason == "box 0 holds 8 of 60 triples"
    nothing = Boxes(np.full(8, -1))
    assert "is not given once" in str(verify(claim(db, nothing, side="upper"), db).reason)


def test_lower_bounds_of_one_component_do_not_add() -> None:
    db = example_2_4()
    whole = rank_interval(db).lower.arguments
    doubled = claim(db, *whole, *whole)
    assert verify(doubled, db).reason == "argument 0 may change what argument 1 is about"


def test_effective_lower_bounds_do_not_add_over_components() -> None:
    # two copies of Example 2.2 have effective rank 9, and rank 5 each
    rows = [tuple(copy + token for token in row) for copy in "ab" for row in FIGURE_1]
    db = Database.from_triples(rows)
    rank = rank_interval(db)
    assert str(rank) == "[10, 10]"
    stolen = claim(db, *rank.lower.arguments, quantity="effective_rank")
    assert not verify(stolen, db).proved
    assert effective_rank_interval(db).lower.value <= 9


def test_damaged_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    for text, reason in [
        ("{", "Expecting"), ("[]", "holds none"), ("[1]", "must be a JSON object"),
        ('[{"format": "other"}]', "must have the format"), ("\xff", "utf-8"),
    ]:  # fmt: skip
        path.write_text(text, encoding="latin-1")
        with pytest.raises(CertificateError, match=rf"c\.json must hold certificates.*{reason}"):
            load_certificates(path)
    save_certificates(path, certificates_of(figure_1()))
    assert len(load_certificates(path)) == 4
