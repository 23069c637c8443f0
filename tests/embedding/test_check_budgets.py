"""A claim of a dimension is checked within the budget of the certificates of ranks of its file.

Each case is one that took minutes or gigabytes. Costs are charged in steps before the work, and so
are the same on any machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from capacity.database import Database, write_tsv
from capacity.embedding import (
    Counts,
    Dimension,
    QueryGraph,
    Reason,
    Shattered,
    SmallNorm,
    Witness,
    dimension,
    dimensions,
    verify_dimension,
)
from capacity.embedding.results.serialization import (
    dimension_to_dict,
    load_dimensions,
    save_dimensions,
)
from capacity.embedding.verifier.checker import Checks
from capacity.embedding.verifier.necessary import Ends, Known
from capacity.errors import MemoryBudgetError
from capacity.rank.verifier.budget import FACTS, STEPS, CheckBudget
from tests.commands import run, run_json
from tests.embedding.forged import cube, graph
from tests.oracles import KNOWN_RANKS

COSTLY = "too costly to check: it needs"


def random_graph(n: int, sides: tuple[int, int, int], seed: int = 0) -> Database:
    rng = np.random.default_rng(seed)
    rows = np.unique(np.stack([rng.integers(0, of, n) for of in sides], axis=1), axis=0)
    return graph([(s, q, o) for s, q, o in rows.tolist()])


def bare(db: Database, model: str = "CP", task: Any = "ranking") -> Dimension:
    found = dimension(db, model, task, shared=False, witness=False)
    return replace(found, reasons=(), estimate=None, ranks=())


def test_the_effort_that_a_file_names_costs_nothing() -> None:
    # 357 bytes took 21 s
    db = random_graph(260, (30, 5, 30))
    reasons = (Reason("sufficient", 10**9, "by a long search"),)
    claim = replace(bare(db, "CP", "exact"), effort="thorough", reasons=reasons)
    checks = Checks(db)
    assert checks.verdict(claim).proved
    first = STEPS - checks.budget.steps
    assert first < STEPS // 1000
    # 1,000 of them share what they need; each takes its part of the budget
    for _ in range(999):
        assert checks.verdict(claim).proved
    assert STEPS - checks.budget.steps < 1000 * first
    checks.budget.steps = 100_000
    with pytest.raises(MemoryBudgetError, match=COSTLY):
        checks.verdict(claim)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["exact", "signs", "ranking", "both-sides"])
def test_a_file_of_all_families_fits_the_budget(task: Any, tmp_path: Path) -> None:
    # the budget grows with the facts from 10^6; what is charged does from the first
    db = random_graph(20_000, (1_000, 20, 1_000))
    save_dimensions(dimensions(db, task=task, witness=False), tmp_path / "all.json")
    checks = Checks(db)
    assert all(checks.verdict(one).proved for one in load_dimensions(tmp_path / "all.json"))
    assert STEPS - checks.budget.steps < STEPS * db.n_facts / FACTS


@pytest.mark.slow
def test_a_check_loads_no_search(tmp_path: Path) -> None:
    db = graph(cube(3))
    found = dimensions(db, ["CP", "ComplEx", "DistMult"], shared=False, witness=False)
    save_dimensions(found, tmp_path / "all.json")
    write_tsv(db, tmp_path / "facts.tsv")
    script = f"""
import sys
from capacity import load
from capacity.embedding.results.serialization import load_dimensions
from capacity.embedding.verifier.checker import Checks
checks = Checks(load({str(tmp_path / "facts.tsv")!r}, multi="keep"))
assert all(checks.verdict(one).proved for one in load_dimensions({str(tmp_path / "all.json")!r}))
searches = ("rank.search", "rank.lower", "rank.upper", "rank.cp", "rank.interval",
            "embedding.signs", "embedding.quantities",
            "embedding.witnesses.training", "embedding.families")
found = [name for name in sys.modules if name.removeprefix("capacity.").startswith(searches)]
assert not found, found
"""
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [pytest.param("objects", marks=pytest.mark.full), "queries", "comparisons"]
)
def test_points_and_rows_are_counted_before_they_are_looked_up(kind: Any) -> None:
    # 84 KB took 39 s and 2.67 GB
    db = random_graph(260, (30, 5, 30))
    of = (3,) if kind == "comparisons" else ()
    tracemalloc.start()
    for n_points, n_rows in ((8_000, 20_000), (10**6, 10**6), (21, 1), (20, 2**19 + 1)):
        points = np.broadcast_to(np.int64(0), (n_points, *of))
        rows = np.broadcast_to(np.int64(0), n_rows)
        proofs = [Shattered(kind, points, rows)]
        if max(n_points, n_rows) > 512:
            proofs.append(SmallNorm(kind, points, rows, 2))  # type: ignore[arg-type]
        for proof in proofs:
            claim = replace(bare(db), reasons=(Reason("necessary", 2, "", proof),))
            with pytest.raises(MemoryBudgetError, match=COSTLY):
                verify_dimension(claim, db)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 * 2**20


@pytest.mark.slow
def test_scores_times_dimensions_of_a_witness_are_limited() -> None:
    # 3 * 10^11 products
    n = 30_000
    db = graph([(i, i % 3, (7 * i + 1) % n) for i in range(n)])
    ones = np.ones((), np.int64)

    def factor(*shape: int) -> np.ndarray:
        return np.broadcast_to(ones, shape)

    entities, d = db.shape[0] + db.shape[2], 300
    cases: dict[str, dict[str, Any]] = {
        "CP": {"a": factor(db.shape[0], d), "b": factor(3, d), "c": factor(db.shape[2], d)},
        "ComplEx": {"x": factor(entities, d), "y": factor(entities, d), "u": factor(3, d),
                    "v": factor(3, d)},
        "RESCAL": {"e": factor(entities, d), "W": factor(3, d, d)},
        "TuckER": {"e": factor(entities, d), "w": factor(3, 9), "W": factor(9, d, d)},
    }  # fmt: skip
    claim = bare(db)
    for model, factors in cases.items():
        for task in ("ranking", "signs", "both-sides"):
            other = replace(
                claim, model=model, task=task, witness=Witness(model, d, factors)  # type: ignore[arg-type]
            )  # fmt: skip
            with pytest.raises(MemoryBudgetError, match=COSTLY):
                verify_dimension(other, db)


def test_every_count_says_what_it_takes_before_it() -> None:
    """Found by a walk over all quantities, so that a new one can't do without."""
    db = graph([(0, 0, 1), (1, 0, 2), (2, 1, 0)], separate=False)
    names = [name for name, of in vars(Counts).items() if isinstance(of, cached_property)]
    assert len(names) > 15
    for name in names:
        known = Known(db, QueryGraph.of(db, True), Ends(), CheckBudget(0))
        with pytest.raises(MemoryBudgetError, match=COSTLY):
            getattr(known, name)


@pytest.mark.slow
def test_long_eliminations_and_orders_are_too_costly() -> None:
    # an exact rank that fills up, and one that peels two facts a round
    dense = random_graph(9_000, (150, 1, 150))
    path = graph([(i + j, 0, i) for i in range(30_000) for j in (0, 1)])
    for db, steps in ((dense, 10**7), (path, STEPS)):
        checks = Checks(db, CheckBudget(steps))
        claim = replace(bare_of(db), reasons=(Reason("sufficient", 1, ""),))
        with pytest.raises(MemoryBudgetError, match=COSTLY):
            checks.verdict(claim)


def bare_of(db: Database) -> Dimension:
    """A claim of exact scores of a linear output layer, without a search."""
    return Dimension(
        "linear", "exact", False, (), None, None, (), "quick", 0, db.facts_sha256, db.multi
    )


@pytest.mark.slow
def test_what_is_computed_for_a_claim_is_there_for_the_next() -> None:
    db = random_graph(1_000, (200, 5, 200))
    found = dimensions(db, ["CP", "SimplE", "RESCAL", "TuckER"], shared=False, witness=False)
    alone = 0
    for one in found:
        budget = CheckBudget()
        assert verify_dimension(one, db, budget=budget).proved
        alone += STEPS - budget.steps
    checks = Checks(db)
    assert all(checks.verdict(one).proved for one in found)
    together = STEPS - checks.budget.steps
    assert together < alone / 2
    # and again costs little
    assert all(checks.verdict(one).proved for one in found)
    assert STEPS - checks.budget.steps < 1.6 * together


@pytest.mark.slow
@pytest.mark.parametrize("effort", ["quick", "standard", "thorough"])
@pytest.mark.parametrize("name", ["Example 2.2", "Z/4"])
def test_what_any_effort_finds_is_proved_from_its_file(
    effort: Any, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db = KNOWN_RANKS[name][0]()
    write_tsv(db, tmp_path / "facts.tsv")
    options = ("--effort", effort, "--no-witness", "--model", "CP", "--model", "RESCAL")
    file = tmp_path / "all.json"
    code, _, _ = run(capsys, "dimension", tmp_path / "facts.tsv", "--certificate", file, *options)
    assert code == 0
    told = run_json(capsys, "verify", file, tmp_path / "facts.tsv")
    assert told["proved"], told["reason"]
    # the rank's certificates are there once, and aren't searched again
    rows = [row for row in told["certificates"] if row["quantity"] != "dimension"]
    assert len(rows) <= 3
    # without them, what rests on them isn't proved
    items = json.loads(file.read_text())
    file.write_text(json.dumps([x for x in items if x["format"] == "capacity dimension 1"]))
    code, out, _ = run(capsys, "verify", file, tmp_path / "facts.tsv")
    assert code == 1
    assert "of which it carries none" in out


def test_a_file_has_each_rank_once_and_each_dimension_has_them(tmp_path: Path) -> None:
    db = graph(cube(3))
    found = dimensions(db, ["CP", "RESCAL"], shared=False, witness=False)
    save_dimensions(found, tmp_path / "two.json")
    data = json.loads((tmp_path / "two.json").read_text())
    assert [x["format"].rpartition(" ")[0] for x in data] == [
        *["capacity certificate"] * 3, *["capacity dimension"] * 2,
    ]  # fmt: skip
    again = load_dimensions(tmp_path / "two.json")
    assert [dimension_to_dict(x) for x in again] == [dimension_to_dict(x) for x in found]
    assert [len(x.ranks) for x in again] == [3, 3]
    assert all(verify_dimension(x, db).proved for x in again)


def test_a_rank_that_isnt_proved_proves_no_dimension() -> None:
    db = graph(cube(3))
    found = dimension(db, "CP", "exact", shared=False)
    forged = tuple(
        replace(one, value=one.value - 1) if one.side == "upper" else one for one in found.ranks
    )
    assert found.sufficient is not None
    less = (Reason("sufficient", found.sufficient - 1, ""),)
    reason = verify_dimension(replace(found, ranks=forged, reasons=less), db).reason
    assert "the upper bound" in str(reason)
    assert "isn't proved" in str(reason)


@pytest.mark.slow
def test_many_ranks_in_a_file_of_many_dimensions_are_held_once_and_paid_for(tmp_path: Path) -> None:
    # each dimension goes over all ranks of the file
    db = random_graph(60, (10, 2, 10))
    found = dimension(db, "CP", witness=False)
    rank, n = found.ranks[0], 300
    path = tmp_path / "claims.json"
    data = [*[rank.to_dict()] * n, *[dimension_to_dict(bare(db))] * n]
    path.write_text(json.dumps(data))
    claims = load_dimensions(path)
    assert len(claims) == n
    assert len({id(claim.ranks) for claim in claims}) == 1
    checks = Checks(db)
    checks.verdict(claims[0])
    left = checks.budget.steps
    checks.verdict(claims[1])
    # what of them is known already, a step for each microsecond
    assert 1_000 * n < left - checks.budget.steps
