"""Claims of dimensions that name what isn't there, or contradict themselves, prove nothing."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from capacity.database import Database
from capacity.embedding import (
    Dimension,
    Estimate,
    Obstruction,
    Reason,
    Shattered,
    SmallNorm,
    Witness,
    dimension,
    verify_dimension,
)
from capacity.embedding.results.serialization import save_dimensions
from capacity.embedding.verifier.checker import Checks
from capacity.errors import CapacityError, MemoryBudgetError
from capacity.rank.verifier.budget import CheckBudget
from capacity.testing.choices import Choices
from tests.commands import run
from tests.embedding.forged import (
    SHAPES,
    cube,
    form,
    graph,
    leaves,
    numbers_for,
    of_dimension,
    read,
    trial,
    with_number,
    written,
)

# one dimension ranks them: a line on which o0 is at one end and o1 at the other
LINE = [(0, 0, 0), (1, 0, 1), (0, 1, 0), (0, 1, 1), (1, 1, 0), (1, 1, 1)]
WITH_COMPARISONS = ("CP", "DistMult", "ComplEx", "SimplE", "RESCAL", "TuckER")


def bare(db: Database, model: str, task: Any = "ranking") -> Dimension:
    """A claim without reasons."""
    return replace(
        dimension(db, model, task, shared=False, witness=False), reasons=(), estimate=None
    )


def with_signs(claim: Dimension, value: int, proof: Any) -> Dimension:
    return replace(claim, reasons=(Reason("necessary", value, "forged", proof),))


@pytest.mark.parametrize("model", WITH_COMPARISONS)
@pytest.mark.parametrize("nobody", [2, 999_999, -1, -(2**63), 2**62])
def test_a_comparison_with_an_object_that_isnt_there_proves_nothing(
    model: str, nobody: int
) -> None:
    # a constant sign in the last columns: 2^3 patterns up to negation, of two rows that are there
    db = graph(LINE)
    points = np.array([[0, 0, 1], [1, 0, nobody], [1, nobody, 0], [0, nobody, 0]])
    rows = np.arange(2)
    claim = bare(db, model)
    for some in (points[:2], points[[0, 2]], points[1:3], points):
        for proof in (Shattered("comparisons", some, rows),
                      SmallNorm("comparisons", some, rows, 2)):  # fmt: skip
            # the dimension 1 is right, and forged as well
            for value in (1, 2, 3):
                verdict = verify_dimension(with_signs(claim, value, proof), db)
                assert "isn't there" in str(verdict.reason)


def test_the_file_that_proved_two_of_one_is_refuted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = tmp_path / "facts.tsv"
    facts.write_text("s1\tq\ta\ns2\tq\tb\ns1\tq2\ta\ns1\tq2\tb\ns2\tq2\ta\ns2\tq2\tb\n")
    db = Database.from_triples(
        [tuple(row.split("\t")) for row in facts.read_text().splitlines()], multi="keep"
    )
    proof = Shattered("comparisons", np.array([[0, 0, 1], [1, 0, 999_999]]), np.arange(2))
    file = tmp_path / "forged.json"
    save_dimensions([with_signs(bare(db, "CP"), 2, proof)], file)
    code, out, err = run(capsys, "verify", file, facts, "--multi", "keep")
    assert (code, err) == (1, "")
    assert "not proved, a point or a row isn't there" in out


def test_an_object_is_compared_with_another_one() -> None:
    db = graph(cube(2))
    for points in ([[0, 0, 0]], [[0, 0, 1], [1, 1, 1]]):
        proof = Shattered("comparisons", np.array(points), np.arange(2))
        reason = verify_dimension(with_signs(bare(db, "CP"), 1, proof), db).reason
        assert reason == "an object is compared with itself"


@pytest.mark.parametrize("kind", ["objects", "queries", "comparisons"])
def test_points_and_rows_are_within_the_facts_and_distinct(kind: Any) -> None:
    # patterns of two answers are shattered as objects and queries, too
    db = graph([*cube(3), (8, 0, 2), (9, 1, 2), (10, 2, 2)])
    found = dimension(db, "CP", "signs", witness=False)
    proofs = [r.certificate for r in found.reasons
              if isinstance(r.certificate, Shattered | SmallNorm)]  # fmt: skip
    mine = [one for one in proofs if one.kind == kind]
    assert mine
    claim = bare(db, "CP", "signs")
    assert all(verify_dimension(with_signs(claim, 1, one), db).proved for one in mine)
    for one, name in itertools.product(mine, ("points", "rows")):
        numbers = getattr(one, name)
        for place in np.ndindex(numbers.shape):
            for wrong in (-1, 999, 2**40, 2**63 - 1, -(2**63)):
                other = numbers.copy()
                other[place] = wrong
                forged = replace(one, **{name: other})
                reason = verify_dimension(with_signs(claim, 1, forged), db).reason
                assert reason == "a point or a row isn't there"
        twice = replace(one, **{name: np.concatenate([numbers, numbers[:1]])})
        assert "twice" in str(verify_dimension(with_signs(claim, 1, twice), db).reason)
        kinds = (bool, float, np.int32, np.uint64, object)
        odd = [numbers[:0], np.array(0), np.zeros((1, 1, 3), np.int64), [0], None]
        for other in odd + [numbers.astype(dtype) for dtype in kinds]:
            forged = replace(one, **{name: other})
            assert not verify_dimension(with_signs(claim, 1, forged), db).proved


def test_a_claim_whose_lower_end_is_above_the_upper_one_is_refused() -> None:
    db = graph(cube(3))
    for model in ("CP", "linear", "RESCAL"):
        found = dimension(db, model, witness=False)
        assert found.necessary is not None
        assert found.sufficient is not None
        more = Reason("necessary", found.sufficient + 1, "forged")
        reason = verify_dimension(replace(found, reasons=(*found.reasons, more)), db).reason
        assert "is above the upper one" in str(reason)


def test_facts_that_stop_scores_are_there_and_named_once() -> None:
    db = graph([(0, 0, 1), (1, 0, 2), (2, 0, 0)], separate=False)
    found = dimension(db, "DistMult", witness=False)
    right = Obstruction(0, (0, 1, 2, 0))
    odd: tuple[Any, ...] = (-1, 3, 2**70, 2.0, True, None, 1)
    wrong: tuple[Any, ...] = (
        Obstruction(-1, right.entities), Obstruction(1, right.entities),
        Obstruction(2**63, right.entities), Obstruction(True, right.entities),  # type: ignore[arg-type]
        *(Obstruction(0, (0, 1, x, 0)) for x in odd),
        Obstruction(0, (0, 1, 2, 0, 1, 2, 0)), Obstruction(0, (0,)), Obstruction(0, ()),
        Obstruction(0, [0, 1, 2, 0]), None, "0 1 2 0",  # type: ignore[arg-type]
    )  # fmt: skip
    for one in (right, *wrong):
        claim = replace(found, reasons=(Reason("impossible", 0, "", (one,)),))
        assert verify_dimension(claim, db).proved == (one is right), one


def test_factors_are_of_the_shapes_of_their_family() -> None:
    db = graph(cube(2))
    for model in WITH_COMPARISONS:
        # a vector of each subject and of each object, all of which are right for n = 4 + 2
        found = bare(db, model)
        names = {"CP": "abc", "DistMult": "ew", "ComplEx": "xyuv", "SimplE": "abvw",
                 "RESCAL": "eW", "TuckER": "ewW"}[model]  # fmt: skip
        for size, d in itertools.product((0, 1, 2, 4, 6), (1, 2)):
            for shape in ((size, d), (size, d, d), (size,), ()):
                factors = {name: np.ones(shape, np.int64) for name in names}
                claim = replace(found, witness=Witness(model, d, factors))
                # all scores are equal
                assert not verify_dimension(claim, db).proved
        for wrong in ({}, None, [], {"a": None}, dict.fromkeys(names)):
            claim = replace(found, witness=Witness(model, 1, wrong))  # type: ignore[arg-type]
            assert not verify_dimension(claim, db).proved


@pytest.mark.slow
def test_fields_of_another_type_are_refused_in_words() -> None:
    db = graph(cube(2))
    found = dimension(db, "CP")
    odd: tuple[Any, ...] = (None, 0, -1, 1.5, True, "x", "", (), [], {}, (None,), [1], np.zeros(2),
                            2**70, np.nan, object())  # fmt: skip
    for each in dataclasses.fields(Dimension):
        for value in odd:
            claim = replace(found, **{each.name: value})
            with contextlib.suppress(CapacityError):
                verify_dimension(claim, db)
    reason, estimate, witness = found.reasons[0], found.estimate, found.witness
    assert estimate is not None
    for each, value in itertools.product(dataclasses.fields(Reason), odd):
        claim = replace(found, reasons=(replace(reason, **{each.name: value}),))
        verify_dimension(claim, db)
    for each, value in itertools.product(dataclasses.fields(Estimate), odd):
        verify_dimension(replace(found, estimate=replace(estimate, **{each.name: value})), db)
    if witness is not None:
        for each, value in itertools.product(dataclasses.fields(Witness), odd):
            verify_dimension(replace(found, witness=replace(witness, **{each.name: value})), db)


def test_scores_of_zero_at_what_is_no_fact_have_no_sign() -> None:
    """Signs are strict, or the bounds by shattered points and norms of signs were false.

    Scores <h, e> of two dimensions are above 0 at exactly these facts, and 0 at some others. Three
    objects are shattered: scores with all signs take three dimensions.
    """
    h = np.array([[-1, 0], [1, 0], [1, 1], [-1, 1], [0, -1]])
    e = np.array([[0, 1], [0, -1], [1, 0], [-1, 0]])
    scores = h @ e.T
    db = graph([(s, 0, o) for s, o in np.argwhere(scores > 0).tolist()])
    found = dimension(db, "linear", "signs", shared=False, witness=False)
    assert (found.necessary, found.sufficient) == (3, 3)
    claim = replace(bare(db, "linear", "signs"), witness=Witness("linear", 2, {"h": h, "e": e}))
    assert "isn't below 0" in str(verify_dimension(claim, db).reason)
    # with another dimension they have all signs
    wider = {"h": np.c_[2 * h, -np.ones(5, int)], "e": np.c_[e, np.ones(4, int)]}
    assert verify_dimension(replace(claim, witness=Witness("linear", 3, wider)), db).proved


def honest() -> Iterator[tuple[Database, Dimension]]:
    """Claims with every field of their form, and what is known of their graph by other means."""
    choose = Choices.seeded(0)
    for model, d in itertools.product(SHAPES, (1, 2)):
        made = None
        while made is None:
            made = of_dimension(choose, model, d, "ranking", shared=False)
        db, witness = made
        found = dimension(db, model, shared=False, witness=False)
        yield db, replace(found, witness=witness)
    cubes = graph(cube(3))
    for model in ("CP", "linear"):
        yield cubes, dimension(cubes, model, witness=False)
    hadamard = graph([(s, 0, o) for s in range(8) for o in range(8) if (s & o).bit_count() % 2])
    yield hadamard, dimension(hadamard, "linear", "signs", witness=False)
    circle = graph([(0, 0, 1), (1, 0, 2), (2, 0, 0)], separate=False)
    yield circle, dimension(circle, "DistMult", witness=False)


@pytest.mark.slow
def test_any_number_in_any_field_is_refused_or_true() -> None:
    """Numbers out of range, negative, huge and equal, for every field of every claim's form."""
    met: set[str] = set()
    for db, found in honest():
        checks = Checks(db, CheckBudget(10**12))
        assert checks.verdict(found).proved
        least, most = found.necessary or 1, found.sufficient or np.inf
        data = written(found)
        times: Counter[str] = Counter()
        for path in leaves(data):
            field = form(path)
            times[field] += 1
            # three places of a field are enough
            if times[field] > 3:
                continue
            met.add(field)
            for number in numbers_for(data, path):
                claim = read(with_number(data, path, number), found.ranks)
                if claim is None or not proved(checks, claim):
                    continue
                assert claim.necessary is None or claim.necessary <= most, (path, number)
                assert claim.sufficient is None or claim.sufficient >= least, (path, number)
                assert claim.impossible is None or found.impossible is not None
    signs = "reasons.*.certificate"
    assert met == {
        "reasons.*.value", f"{signs}.points.*", f"{signs}.points.*.*", f"{signs}.rows.*",
        f"{signs}.dimension", f"{signs}.relations.*.relation", f"{signs}.relations.*.entities.*",
        "estimate.dimension", "estimate.bits", "seed", "witness.dimension",
        *(f"witness.factors.{name}.*.*" for name in "abcehuvwxy"), "witness.factors.W.*.*.*",
    }  # fmt: skip


def proved(checks: Checks, claim: Dimension) -> bool:
    try:
        return checks.verdict(claim).proved
    except MemoryBudgetError:
        return False


@pytest.mark.slow
def test_no_mutated_claim_of_a_dimension_contradicts_a_witness_or_a_theorem() -> None:
    # 2,000 claims; `make soak-dimension` has 10,000
    counts: Counter[str] = Counter()
    for seed in range(100):
        result = trial(seed, 20)
        assert not result["wrong"], result["wrong"]
        counts.update(result["counts"])
    assert counts["claims"] == 2_000
    wanted = ("proved", "tight", "beyond what is known")
    assert min(counts[what] for what in wanted) > 50, counts


def test_what_is_no_json_number_is_refused_at_reading() -> None:
    data = written(dimension(graph(cube(2)), "CP", witness=False))
    for path in leaves(data):
        for odd in ("x", None, [], {}):
            claim = read(with_number(data, path, odd), ())
            if claim is not None:
                # an estimate may have no dimension
                assert form(path) == "estimate.dimension"
