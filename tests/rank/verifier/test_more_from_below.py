"""Algebras, loci of rank one and trees of cases: what they prove, and what they refuse."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from capacity.database import Database
from capacity.errors import MemoryBudgetError
from capacity.rank import AlderStrassen, Cases, RankOneLocus, View, rank_interval
from capacity.rank.lower.rank_one_loci import linear_form
from capacity.rank.lower.substitution.case_trees import case_tree
from capacity.rank.lower.substitution.exhaustive import tree_of
from capacity.rank.verifier.budget import STEPS, CheckBudget
from capacity.rank.verifier.checker import verify
from capacity.rank.verifier.entries import Refuted
from capacity.rank.verifier.kinds.algebra import n_maximal_ideals, products
from capacity.rank.verifier.kinds.cases import (
    NONZERO,
    OTHER,
    UNKNOWN,
    VALUE,
    ZERO,
    ratios_of,
    subtracted,
)
from capacity.rank.verifier.kinds.rank_one_locus import is_combination, minors_of
from capacity.tensor import SparseTensor, direct_sum, from_dense
from capacity.tensor.known import (
    KNOWN_RANKS,
    KnownTensor,
    complex_numbers,
    matrix_multiplication,
    polynomials_modulo,
    quaternions,
)
from tests.oracles import database
from tests.second_checker import claim, second_checker
from tests.tiers import examples

ONES = {n: np.ones(n, np.int64) for n in range(1, 30)}
MORE = ["Alder-Strassen", "rank-one locus"]


def whole(tensor: SparseTensor | Database) -> View:
    return View(tuple(np.arange(n) for n in tensor.shape))


def in_other_bases(tensor: SparseTensor, rng: np.random.Generator) -> SparseTensor:
    T = tensor.to_numpy()
    for mode, n in enumerate(T.shape):
        P = np.triu(rng.integers(-1, 2, (n, n)), 1) + np.eye(n, dtype=np.int64)
        T = np.moveaxis(np.tensordot(P[rng.permutation(n)], T, (1, mode)), 0, mode)
    return from_dense(T)


@pytest.mark.parametrize("known", [k for k in KNOWN_RANKS if k.tensor.order == 3],
                         ids=lambda known: known.name)  # fmt: skip
def test_known_ranks_are_not_exceeded_in_any_bases(known: KnownTensor) -> None:
    for tensor in (known.tensor, in_other_bases(known.tensor, np.random.default_rng(3))):
        lower = rank_interval(tensor, methods=MORE, effort="quick").certificates.lower
        assert lower.value <= known.upper
        assert verify(lower, tensor).proved


# Alder and Strassen 1981: 2 n - t
ALGEBRAS = {
    "matrices 2 x 2 times 2 x 2": 7,
    "matrices 3 x 3 times 3 x 3": 17,
    "R[x] / (x^5)": 9,
    "R[x] / ((x^2 + 1)^2)": 7,
    "quaternions": 7,
    "group Z/7": 10,
    "group S3": 9,
    "triangular 3 x 3 matrices": 9,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ALGEBRAS)
def test_algebras_are_recognised_in_any_bases(name: str) -> None:
    tensor = next(k.tensor for k in KNOWN_RANKS if k.name == name)
    for of in (tensor, in_other_bases(tensor, np.random.default_rng(5))):
        lower = rank_interval(of, methods=["Alder-Strassen"], effort="quick").certificates.lower
        assert (lower.value, lower.by) == (ALGEBRAS[name], "Alder-Strassen")
        assert second_checker(lower, of)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=6), st.booleans())
@settings(max_examples=examples(100))
def test_ideals_modulo_a_polynomial_are_its_real_factors(low: list[int], squared: bool) -> None:
    f = np.polynomial.Polynomial([*low, 1])
    f = f**2 if squared and len(low) <= 3 else f
    coefficients = [round(c) for c in f.coef]
    p = flint.fmpq_poly(coefficients)
    # distinct factors over the reals: real roots, and pairs of others, of the squarefree part
    squarefree = p / p.gcd(p.derivative())
    # python-flint 0.7 has no float of a fraction
    roots = np.roots([int(c.p) / int(c.q) for c in reversed(squarefree.coeffs())])
    assume(all(abs(a - b) > 1e-3 for a, b in itertools.combinations(roots, 2)))
    real = int((np.abs(roots.imag) < 1e-6).sum())
    tensor = polynomials_modulo(coefficients).to_numpy()
    n = len(tensor)
    unit = np.eye(n, dtype=np.int64)[0]
    assert n_maximal_ideals(products(tensor, unit, unit)) == real + (len(roots) - real) // 2


def test_ideals_of_direct_sums_add_up() -> None:
    tensor = direct_sum(complex_numbers(), quaternions(), matrix_multiplication(2, 2, 2))
    n = 2 + 4 + 4
    lower = rank_interval(tensor, methods=["Alder-Strassen"], effort="quick").certificates.lower
    # each component alone: 3 + 7 + 7, of which one certificate may have one
    assert lower.value >= 2 + 4 + 7
    # as one algebra, which has three ideals
    T = in_other_bases(tensor, np.random.default_rng(0)).to_numpy()
    for mode in range(3):
        turned = np.moveaxis(T, mode, 2)
        rng = np.random.default_rng(1)
        for _ in range(20):
            u, v = rng.integers(-3, 4, (2, n))
            try:
                t = n_maximal_ideals(products(turned, u, v))
            except Refuted:
                continue
            assert t == 3
            said = AlderStrassen(whole(from_dense(T)), mode, u, v, 2 * n - t)
            assert verify(claim(from_dense(T), said), from_dense(T)).proved
            break
        else:
            raise AssertionError(mode)


def test_what_is_no_algebra_is_refused() -> None:
    # a Latin square of order 5 that is no group's: its second row isn't the first one shifted
    rows = [[0, 1, 2, 3, 4], [1, 0, 3, 4, 2], [2, 3, 4, 0, 1], [3, 4, 1, 2, 0], [4, 2, 0, 1, 3]]
    square = database([(i, j, x) for i, row in enumerate(rows) for j, x in enumerate(row)])
    found = rank_interval(square, methods=["Alder-Strassen"], effort="quick").certificates.lower
    assert found.by != "Alder-Strassen"
    first, group = (
        np.eye(5, dtype=np.int64)[0],
        next(k for k in KNOWN_RANKS if k.name == "group Z/5"),
    )

    def reason(of: Any, u: Any, v: Any, value: int, **changed: Any) -> str | None:
        said = AlderStrassen(**{"view": whole(of), "mode": 2, "left": u, "right": v,
                                "value": value, **changed})  # fmt: skip
        verdict = verify(claim(of, said), of)
        assert second_checker(claim(of, said), of) or not verdict.proved
        return verdict.reason

    assert reason(square, first, first, 9) == "the product isn't associative"
    of = group.tensor
    assert reason(of, first, first, 7) is None
    assert reason(of, first, first, 8) == "5 dimensions and 3 ideals prove 7"
    assert reason(of, ONES[5], first, 7) == "a map of the algebra is singular"
    assert reason(of, first[:4], first, 7) == "a vector must have a coefficient for each slice"
    assert reason(of, first * 2000, first, 7) == "a coefficient of a vector exceeds 1,000"
    assert reason(of, first, first, 7, mode=3) == "a mode must be from 0 to 2"
    part = View((np.arange(4), np.arange(5), np.arange(5)))
    assert reason(of, first[:4], first, 7, view=part) == "the view must be n x n x n"
    large = from_dense(np.eye(25, dtype=int)[:, :, None] * np.eye(25, dtype=int)[:, None])
    said = claim(large, AlderStrassen(whole(large), 2, ONES[25], ONES[25], 25))
    with pytest.raises(MemoryBudgetError, match="25 dimensions of an algebra, and may have 24"):
        verify(said, large)


# ---- loci of rank one ---------------------------------------------------------------------------


@given(st.integers(0, 2**20), st.integers(2, 5), st.integers(2, 4), st.integers(2, 4))
@settings(max_examples=examples(60))
def test_slices_that_combinations_of_rank_one_span_have_no_such_form(
    seed: int, n: int, b: int, c: int
) -> None:
    """X_i = sum_r a_r[i] M_r with n matrices M_r of rank one: the rank is n."""
    rng = np.random.default_rng(seed)
    a = np.triu(rng.integers(-2, 3, (n, n)), 1) + np.eye(n, dtype=np.int64)
    x, y = rng.integers(-2, 3, (n, b)), rng.integers(-2, 3, (n, c))
    X = np.einsum("ri,rj,rk->ijk", a, x, y)
    assume(np.linalg.matrix_rank(X.reshape(n, -1)) == n)
    assert linear_form(X, seed=seed) is None
    independent = minors_of(X)
    for _ in range(5):
        form = rng.integers(-2, 3, n)
        assert not form.any() or not is_combination(independent, form)


def test_the_square_of_a_form_must_be_a_combination_of_minors() -> None:
    # rank 6 with unfoldings of rank 5 (sparse uniform 25 of benchmarks/interval_width.py)
    db = database([(0, 0, 0), (0, 1, 2), (0, 2, 2), (1, 0, 1), (1, 1, 3), (1, 2, 0), (2, 0, 0),
                   (2, 1, 2), (2, 2, 2), (3, 0, 1), (3, 1, 4), (3, 2, 3)])  # fmt: skip
    lower = rank_interval(db, methods=["rank-one locus"], effort="quick").certificates.lower
    assert (lower.value, lower.by) == (6, "rank-one locus")
    assert verify(lower, db).proved
    assert second_checker(lower, db)
    assert rank_interval(db, methods=[], effort="quick").lower == 5
    # W: x0^2 is the only minor
    w = next(k for k in KNOWN_RANKS if k.name == "W state of 3 qubits").tensor

    def reason(of: SparseTensor, form: list[int], view: View | None = None) -> str | None:
        said = claim(of, RankOneLocus(view or whole(of), 0, np.array(form)))
        assert second_checker(said, of) == verify(said, of).proved
        return verify(said, of).reason

    good = [form for form in ([1, 0], [0, 1], [-7, 0], [1, 1]) if reason(w, form) is None]
    assert good == [[1, 0], [-7, 0]]
    assert reason(w, [0, 1]) == "the square of the linear form is no combination of minors"
    assert reason(w, [0, 0]) == "the linear form is zero"
    assert reason(w, [0, 1, 0]) == "each slice must have a coefficient"
    twice = from_dense(np.concatenate([w.to_numpy(), w.to_numpy()[1:]]))
    assert reason(twice, [0, 1, 0]) == "3 slices span a space of dimension 2"
    # one slice of rank 2 has a minor that isn't zero
    assert reason(w, [1], View((np.array([0]), np.arange(2), np.arange(2)))) is None


@pytest.mark.parametrize(
    ("shape", "why"),
    [
        ((31, 2, 2), "31 slices of a view, and may have 30"),
        ((2, 40, 40), "608,400 minors, and may have 200,000"),
        ((20, 20, 20), "too costly to check: it needs about"),
    ],
)
def test_minors_are_paid_for(shape: tuple[int, int, int], why: str) -> None:
    of = from_dense(np.random.default_rng(0).integers(-(2**30), 2**30, shape))
    said = claim(of, RankOneLocus(whole(of), 0, np.ones(shape[0], np.int64)))
    with pytest.raises(MemoryBudgetError, match=why):
        verify(said, of)


# ---- cases --------------------------------------------------------------------------------------

numbers = st.integers(-3, 3)


@given(st.lists(st.tuples(numbers, numbers, st.booleans(), st.booleans()), min_size=1, max_size=8),
       st.fractions(-3, 3, max_denominator=3), st.integers(0, 2**20))  # fmt: skip
@settings(max_examples=examples(500))
def test_what_is_known_of_a_difference_is_true(
    entries: list[tuple[int, int, bool, bool]], c: Fraction, seed: int
) -> None:
    """Of random slices, partly known, less a multiple: the case that holds says nothing false."""
    rng = np.random.default_rng(seed)
    x, y = (np.array([e[k] for e in entries]) for k in (0, 1))

    def known(values: Any, hidden: list[bool]) -> Any:
        """What is known of values: each itself, only that it isn't zero, or nothing."""
        exact = np.where(values == 0, ZERO, np.where(rng.random(len(values)) < 0.7, VALUE, NONZERO))
        return np.where(hidden, UNKNOWN, exact).astype(np.int8)

    status, gone = known(x, [e[2] for e in entries]), known(y, [e[3] for e in entries])
    pairs = ratios_of(status, x, gone, y, np.ones(len(x), bool)).tolist()
    assert len({Fraction(p, q) for p, q in pairs}) == len(pairs)
    case = c if c in (0, *(Fraction(p, q) for p, q in pairs)) else OTHER
    after, values = subtracted(status, x, gone, y, case)
    scale = case.denominator if case is not None else 1
    for state, value, first, second in zip(after, values, x, y, strict=True):
        true = (Fraction(int(first)) - c * int(second)) * scale
        assert state != ZERO or true == 0
        assert state not in (VALUE, NONZERO) or true != 0
        # where a multiplier isn't named, values are kept of what isn't touched alone
        assert state != VALUE or value == true


@given(st.integers(0, 2**20), st.integers(1, 4))
@settings(max_examples=examples(40))
def test_trees_never_exceed_the_number_of_terms(seed: int, rank: int) -> None:
    rng = np.random.default_rng(seed)
    factors = [rng.integers(-1, 2, (rank, n)) for n in rng.integers(2, 5, 3)]
    T = np.einsum("ri,rj,rk->ijk", *factors)
    if T.any():
        assert case_tree(T, np.ones(T.shape, bool), rank + 1, work=2 * 10**7, seed=seed) is None


# of rank 10, where substitution and unfoldings give 9; the search finds this tree in seconds
TEN = [(0, 1, 1), (0, 3, 3), (1, 0, 2), (1, 3, 1), (1, 4, 1), (2, 0, 1), (2, 2, 3), (2, 4, 3),
       (3, 5, 2), (4, 1, 1), (4, 3, 0), (4, 5, 3), (5, 5, 1)]  # fmt: skip


def a_tree() -> tuple[Database, Cases]:
    db = database(TEN)
    dense = db.tensor().to_numpy()
    for seed in range(40):
        node = case_tree(dense, np.ones(dense.shape, bool), 10, work=10**9, seed=seed)
        if node is not None:
            return db, tree_of(node, View(tuple(np.arange(n) for n in dense.shape)), 10)
    raise AssertionError("no tree was found")


@pytest.mark.slow
def test_a_tree_proves_a_step_more_and_needs_every_case() -> None:
    db, tree = a_tree()
    assert len(tree.nodes) > 1

    def reason(**changed: Any) -> str | None:
        said = claim(db, replace(tree, **changed))
        assert second_checker(said, db) == verify(said, db).proved
        return verify(said, db).reason

    assert reason() is None
    # the effective rank has unknown fibers, where the tree may lack a nonzero slice
    effective = claim(db, tree, quantity="effective_rank")
    assert second_checker(effective, db) == verify(effective, db).proved
    assert "lacks 1 step" in str(reason(value=11))
    last = tree.nodes[-1, 0]
    assert reason(nodes=tree.nodes[:-1], removals=tree.removals[:-last]) == (
        "a case of the tree is missing"
    )
    without = tree.nodes.copy()
    without[0, 1] = 0
    assert reason(nodes=without, split=tree.split[1:]) is not None
    assert reason(split=tree.split[::-1][:0]) == "each slice that is split must be of one node"
    assert (
        reason(nodes=np.concatenate([tree.nodes, [[1, 0]]])) == "each removal must be of one node"
    )
    assert reason(nodes=np.zeros((0, 2), np.int64)) == (
        "a tree must have nodes, with numbers of steps"
    )
    assert reason(nodes=np.concatenate([tree.nodes, [[0, 0]]])) == "a node is no case of another"
    for mode, index in ((3, 0), (0, 6), (0, -1)):
        elsewhere = tree.removals.copy()
        elsewhere[0] = mode, index
        assert reason(removals=elsewhere) is not None
    # twice the same slice
    again = tree.removals.copy()
    again[1] = again[0]
    assert reason(removals=again) == "a slice isn't there"


@pytest.mark.slow
def test_trees_are_paid_for() -> None:
    db, tree = a_tree()
    many = np.zeros((20_001, 2), np.int64)
    with pytest.raises(MemoryBudgetError, match="20,001 nodes of a tree, and may have 20,000"):
        verify(claim(db, replace(tree, nodes=many)), db)
    # a split of many slices, each with many cases, isn't written out before it is refused
    n = 12
    wide = from_dense(np.random.default_rng(0).integers(1, 50, (n, n, n)))
    wild = Cases(
        whole(wide), np.array([[0, 0]]), np.array([[1, n - 1], [0, 0]]), np.arange(1, n), 1
    )
    assert verify(claim(wide, wild), wide).reason == "a case of the tree is missing"


def test_ratios_are_paid_for() -> None:
    # two slices of a million places with as many different ratios
    n = 10**6
    one = from_dense(np.eye(2, dtype=int)[:, :, None])
    P = np.random.default_rng(0).integers(1, 2**20, (n, 2))
    view = View((np.arange(2), np.arange(2), np.arange(1)), (None, P, None))
    tree = Cases(view, np.array([[0, 0]]), np.array([[1, 1], [0, 0]]), np.array([1]), 1)
    budget = CheckBudget()
    assert verify(claim(one, tree), one, budget=budget).reason == "a case of the tree is missing"
    # it sorts them, and is charged for that
    assert STEPS - budget.steps > 600 * n


@pytest.mark.slow
def test_what_the_search_finds_is_within_the_budget() -> None:
    rng = np.random.default_rng(0)
    eye = np.eye(20, dtype=np.int64)
    diagonal = np.einsum("ir,jr,kr->ijk", eye, eye, eye)
    tensors = [
        diagonal + rng.integers(0, 2, (20,) * 3) * (rng.random((20,) * 3) < 0.3),
        polynomials_modulo([0] * 24 + [1]).to_numpy() * 2**25,
    ]
    for tensor in map(from_dense, tensors):
        lower = rank_interval(tensor, methods=MORE, effort="standard").certificates.lower
        assert verify(lower, tensor).proved


def test_a_split_of_several_slices_has_a_case_for_each_choice() -> None:
    # slices x, 2 x and 3 x of a matrix of rank one: ratios 2 and 3, each beside 0 and any other
    one = np.array([[1, 1], [1, 1]])
    tensor = from_dense(np.stack([one, 2 * one, 3 * one]))
    leaf = [0, 0]
    nodes = np.array([[1, 2], *[leaf] * 9])
    tree = Cases(whole(tensor), np.array([[0, 0]]), nodes, np.array([1, 2]), 1)
    assert verify(claim(tensor, tree), tensor).reason is None
    assert second_checker(claim(tensor, tree), tensor)
    # rank one: in the case of both ratios nothing is left
    for number in range(1, 10):
        longer, steps = nodes.copy(), [[0, 0], [0, 1]]
        longer[number, 0] = 1
        said = claim(tensor, replace(tree, nodes=longer, removals=np.array(steps)))
        # cases in order: (0, 0), (0, 3), (0, other), (2, 0), (2, 3), (2, other), (other, ...)
        assert verify(said, tensor).proved == second_checker(said, tensor)
        assert verify(said, tensor).proved == (number not in (4, 5, 6))
