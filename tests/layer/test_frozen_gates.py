"""Frozen W_E, W_Q and W_K: the rank of what a layer sees, the construction, and the counts."""

from __future__ import annotations

import math
from itertools import combinations, product
from typing import Any, cast

import flint
import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from capacity.database import Database, random_database
from capacity.errors import InvalidArgumentError, MultiValuedError
from capacity.evaluator import evaluate, memorises
from capacity.layer import (
    AttentionLayer,
    LayerConfig,
    Recipe,
    frozen_gates_most,
    log2_assignments_held,
    random_gate_facts,
    random_gate_layer,
    random_gate_rank,
    train_many,
)
from capacity.testing import layer_configs
from tests.tiers import examples

Pairs = list[tuple[int, int]]
FROZEN = ("W_E", "W_Q", "W_K")

# any token in any role: loops, and edges in both directions, among the pairs
graphs = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), unique=True, max_size=9)
wide = layer_configs(max_d_model=4, max_heads=3).filter(lambda config: config.d_model >= 2)


def database(pairs: Pairs, objects: list[int]) -> Database:
    facts = zip(pairs, objects, strict=True)
    return Database.from_triples([(f"t{k}", f"t{q}", f"v{v}") for (k, q), v in facts])


def matching(n: int) -> Pairs:
    return [(2 * i, 2 * i + 1) for i in range(n)]


GRAPHS: dict[str, Pairs] = {
    "one predicate": [(i, 99) for i in range(40)],
    "one subject": [(99, i) for i in range(40)],
    "a matching": matching(40),
    "a path": [(i, i + 1) for i in range(40)],
    "a cycle": [(i, (i + 1) % 9) for i in range(9)],
    "both directions": [pair for i in range(20) for pair in ((i, i + 1), (i + 1, i))],
    "two predicates": [(i, 98 + j) for i in range(20) for j in (0, 1)],
    "three subjects, all predicates": [(i, 90 + j) for i in range(3) for j in range(9)],
    "all pairs of six tokens": [(k, q) for k in range(6) for q in range(6)],
}


def rank(pairs: Pairs, config: LayerConfig) -> int:
    return random_gate_rank(np.array(pairs, dtype=np.int64).reshape(-1, 2), config)


def rank_by_unions(pairs: Pairs, config: LayerConfig) -> int:
    """Edmonds: min over sets A of pairs of |A's complement| + the sum over blocks of A's rank."""

    def bound(part: tuple[tuple[int, int], ...]) -> int:
        forest = nx.Graph(part)
        cycleless = len(forest) - nx.number_connected_components(forest) if part else 0
        first = min(config.d_model, len({q for _, q in part}))
        heads = config.n_heads * min(config.d_model, cycleless)
        return len(pairs) - len(part) + first + heads

    return min(bound(part) for n in range(len(pairs) + 1) for part in combinations(pairs, n))


@given(pairs=graphs, config=wide)
@settings(max_examples=examples(60))
def test_the_rank_is_that_of_one_set_of_predicates_and_a_forest_for_each_head(
    pairs: Pairs, config: LayerConfig
) -> None:
    assert rank(pairs, config) == rank_by_unions(pairs, config) <= random_gate_facts(config)


def seen_exactly(pairs: Pairs, config: LayerConfig, seed: int) -> flint.arb_mat:
    """Enclosure of F for weights of integers, gates as in the layer."""
    rng = np.random.default_rng(seed)
    d, heads, qk = config.d_model, config.n_heads, config.d_head_qk
    e = rng.integers(-99, 100, (1 + max(map(max, pairs)), d))
    query_key = np.einsum(
        "hde,hec->hdc", rng.integers(-9, 10, (heads, d, qk)), rng.integers(-9, 10, (heads, qk, d))
    )
    rows = []
    for k, q in pairs:
        apart, row = e[k] - e[q], [flint.arb(int(x)) for x in e[q]]
        for scores in query_key:
            # the scale of W_Q W_K is arbitrary; this makes most scores of order 1
            gate = 1 / (1 + (flint.arb(-int(e[q] @ scores @ apart)) / 50_000).exp())
            row += [int(x) + gate * int(y) for x, y in zip(e[q], apart, strict=True)]
        rows.append(row)
    return flint.arb_mat(rows)


@given(pairs=graphs.filter(len), config=wide, seed=st.integers(0, 2**32))
@settings(max_examples=examples(40))
def test_true_random_gates_reach_the_rank_of_free_ones(
    pairs: Pairs, config: LayerConfig, seed: int
) -> None:
    """A minor of F, compressed by random matrices, provably isn't zero."""
    found = rank(pairs, config)
    rng = np.random.default_rng(seed)
    before = flint.ctx.prec
    try:
        flint.ctx.prec = 600
        F = seen_exactly(pairs, config, seed)
        left = rng.integers(-99, 100, (found, F.nrows())).tolist()
        right = rng.integers(-99, 100, (F.ncols(), found)).tolist()
        minor = (flint.arb_mat(left) * F * flint.arb_mat(right)).det()
    finally:
        flint.ctx.prec = before
    assert minor != 0


def test_with_d_model_1_true_gates_may_have_relations() -> None:
    """So d_model >= 2 is asked for: three tokens in a circle, in both directions."""
    e = np.random.default_rng(0).standard_normal(3)
    around = sum(e[q] * (e[k] - e[q]) for k, q in ((0, 1), (1, 2), (2, 0)))
    back = sum(e[q] * (e[k] - e[q]) for k, q in ((1, 0), (2, 1), (0, 2)))
    assert around == pytest.approx(back)
    for call in (random_gate_facts, lambda config: rank([(0, 1)], config)):
        with pytest.raises(InvalidArgumentError, match="at least 2; got 1"):
            call(LayerConfig(1, 3, 1, 1))


def independent(pairs: Pairs, config: LayerConfig) -> Pairs:
    """The first pairs that are independent."""
    kept: Pairs = []
    for pair in pairs:
        kept += [pair] * (rank([*kept, pair], config) > len(kept))
    return kept


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("sizes", [(2, 1, 1, 1), (2, 5, 1, 2), (3, 4, 3, 1), (6, 2, 2, 3)])
def test_the_construction_holds_any_objects_at_the_limit(
    graph: str, sizes: tuple[int, int, int, int]
) -> None:
    config = LayerConfig(*sizes)
    pairs = independent(GRAPHS[graph], config)
    rng = np.random.default_rng(0)
    for objects in (range(len(pairs)), rng.integers(0, 2, len(pairs)), [0] * len(pairs)):
        db = database(pairs, list(objects))
        layer = random_gate_layer(db, config)
        assert layer.config == config
        assert memorises(layer, db, 0.99)


@given(
    facts=st.dictionaries(
        st.tuples(st.integers(0, 9), st.integers(0, 9)), st.integers(0, 12), min_size=1, max_size=40
    ),
    config=layer_configs(max_heads=5).filter(lambda config: config.d_model >= 2),
    tau=st.sampled_from([0.51, 0.99, 0.99999]),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=examples(150))
def test_databases_are_held_up_to_the_rank_and_refused_beyond(
    facts: dict[tuple[int, int], int], config: LayerConfig, tau: float, seed: int
) -> None:
    db = database(list(facts), list(facts.values()))
    if rank(list(facts), config) == len(facts):
        assert memorises(random_gate_layer(db, config, tau, seed=seed), db, tau)
    else:
        with pytest.raises(InvalidArgumentError, match="any objects at all"):
            random_gate_layer(db, config, tau, seed=seed)


def test_tokens_in_all_roles_and_scaled_attention_are_no_matter() -> None:
    db = Database.from_triples([("a", "b", "a"), ("b", "a", "b"), ("b", "b", "c"), ("c", "c", "a")])
    layer = random_gate_layer(db, LayerConfig(2, 2, 2, 1, scale=True))
    assert memorises(layer, db, 0.99)


def test_hundreds_of_facts_of_the_papers_kind_are_held() -> None:
    db = random_database(3, triples=(150, 250))
    config = LayerConfig(8, 64, 1, 1)
    assert memorises(random_gate_layer(db, config), db, 0.99)


def seen(layer: AttentionLayer, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """F of a layer, by its own attention."""
    e = layer.W_E.detach()
    tokens = torch.from_numpy(pairs)
    with torch.no_grad():
        inputs = layer.attention(e[tokens])[:, :, 1] @ e[tokens]
    return torch.cat([e[tokens[:, 1]], inputs.flatten(1)], dim=1).double().numpy()


def separating(F: NDArray[np.float64], first: NDArray[np.bool_]) -> NDArray[np.float64] | None:
    """A vector y with F y >= 1 at the first rows and <= -1 at the others, if there is one."""
    signed = -np.where(first[:, None], F, -F)
    solved = linprog(np.zeros(F.shape[1]), signed, -np.ones(len(F)), bounds=(None, None))
    return solved.x if solved.status == 0 else None


def draw(config: LayerConfig, n_tokens: int, seed: int) -> AttentionLayer:
    return AttentionLayer(config, n_tokens, seed=seed, dtype=torch.float64)


@pytest.mark.parametrize(
    ("d", "heads", "n"), [(2, 1, 4), (2, 1, 6), (2, 1, 8), (2, 2, 7), (3, 1, 7)]
)
def test_for_two_objects_the_count_is_exact(d: int, heads: int, n: int) -> None:
    """Every assignment is tried; of independent pairs Cover's number is held, by layers of vo 1."""
    config = LayerConfig(d, heads, 1, 1)
    layer = draw(config, 2 * n + 2, seed=n)
    pairs = np.array(matching(n))
    F = seen(layer, pairs)
    held = 0
    for first in product((True, False), repeat=n):
        y = separating(F, np.array(first))
        if y is None:
            continue
        held += 1
        # w = 0 won't do, and margins are 1
        w, u = y[:d] + 1e-3, torch.from_numpy(y[d:].reshape(heads, d, 1))
        W_U = np.zeros((d, 2 * n + 2))
        W_U[:, -2], W_U[:, -1] = w / 2, -w / 2
        # W_O W_U is 1 less -1 at the two objects
        W_O = torch.from_numpy(np.tile(w / (w @ w), (heads, 1, 1)))
        weights = {name: getattr(layer, name).detach() for name in FROZEN}
        weights |= {"W_V": u, "W_O": W_O, "W_U": torch.from_numpy(W_U)}
        if held % 8 == 1:
            answers = AttentionLayer.of_weights(config, weights)(torch.from_numpy(pairs))[:, -1]
            assert (answers.argmax(-1) == torch.where(torch.tensor(first), 2 * n, 2 * n + 1)).all()
    cover = 2 * sum(math.comb(n - 1, i) for i in range((heads + 1) * d))
    assert held == cover == round(2 ** log2_assignments_held(config, n, 2))
    assert (held == 2**n) == (rank(matching(n), config) == n)


@pytest.mark.parametrize("graph", GRAPHS)
def test_beyond_the_rank_some_assignment_of_two_objects_is_not_held(graph: str) -> None:
    """A combination of rows that is zero: no y is positive where it is, and negative elsewhere."""
    config = LayerConfig(2, 2, 1, 1)
    pairs = GRAPHS[graph][:8]
    if (found := rank(pairs, config)) == len(pairs):
        pytest.skip("all objects are held")
    F = seen(draw(config, 100, seed=1), np.array(pairs))
    combination = np.linalg.svd(F.T)[2][-1]
    assert np.abs(combination @ F).max() < 1e-12
    assert found == np.linalg.matrix_rank(F)
    assert separating(F[combination != 0], combination[combination != 0] > 0) is None


@pytest.mark.parametrize(
    ("sizes", "n_objects", "n"),
    [((1, 1, 1, 1), 3, 12), ((2, 1, 1, 1), 3, 24), ((2, 2, 1, 1), 4, 60), ((3, 1, 1, 1), 5, 60)],
)
def test_random_weights_show_no_more_assignments_than_the_count(
    sizes: tuple[int, int, int, int], n_objects: int, n: int
) -> None:
    config = LayerConfig(*sizes)
    bound = log2_assignments_held(config, n, n_objects)
    assert bound < n * math.log2(n_objects)
    rng = np.random.default_rng(0)
    d, heads = config.d_model, config.n_heads
    F = seen(draw(config, 2 * n, seed=0), np.array(matching(n))).reshape(n, heads + 1, d)
    shown = set()
    for _ in range(40):
        W_V, W_O = rng.standard_normal((2, 500, heads, d))
        W_U = rng.standard_normal((500, d, n_objects))
        x = F[:, 0] + np.einsum("nhd,rhd,rhe->rne", F[:, 1:], W_V * 3, W_O, optimize=True)
        shown |= {answer.tobytes() for answer in (x @ W_U).argmax(axis=-1)}
    # with d_model = 1 one of 3 pairs of objects, and half planes: 3 x 2 x 12
    assert len(shown) == 72 if d == 1 else 1000 < len(shown) <= 2**bound


@given(config=layer_configs(max_d_model=20, max_heads=20), n_objects=st.integers(2, 300))
@settings(max_examples=examples(80))
def test_the_ends_are_in_order(config: LayerConfig, n_objects: int) -> None:
    d, heads = config.d_model, config.n_heads
    most = frozen_gates_most(config, n_objects)
    assert frozen_gates_most(config, 2) == 2 * (heads + 1) * d
    # every assignment of as many pairs is held, so the bound can't exclude any
    if d > 1:
        every = random_gate_facts(config)
        assert every <= frozen_gates_most(config, n_objects, share=1) <= most
        held = log2_assignments_held(config, every, n_objects)
        assert held == pytest.approx(every * math.log2(n_objects))
    assert most >= d * (n_objects - 1)
    assert most <= frozen_gates_most(config, n_objects, share=1e-6)
    for n, allowed in ((most, True), (most + 1, False), (2 * most, False)):
        lost = n * math.log2(n_objects) - log2_assignments_held(config, n, n_objects)
        assert (lost <= 1 + 1e-6) == allowed


@given(config=layer_configs(max_d_model=5, max_heads=4), n_objects=st.integers(2, 6))
@settings(max_examples=examples(30))
def test_each_count_is_the_formula_of_its_proof(config: LayerConfig, n_objects: int) -> None:
    d, heads, m = config.d_model, config.n_heads, n_objects - 1
    for n in (1, 3, 10, 100, 3000):
        signs = n * n_objects * m // 2
        linear = min(n, (heads + 1) * d) * m
        counts = [n_objects**n, 2 * sum(math.comb(signs - 1, i) for i in range(linear))]
        for r, other, degree in (
            (min(config.d_head_vo, m), m, 2),
            (config.d_head_vo, d, 3),
            (d, d, 2),
        ):
            free = heads * r * (d + other - r) + d * m
            if signs >= free:
                each = free * math.log2(4 * math.e * degree * signs / free)
                counts.append(math.ceil(2 ** (each % 1) * 2**60) << int(each) >> 60)
                counts[-1] *= math.comb(d, r) ** heads
        # Cover's number is bounded where it is too small a share for its tail to be computed
        found = log2_assignments_held(config, n, n_objects)
        assert found == pytest.approx(math.log2(min(counts)), rel=1e-2, abs=1e-3)
        assert found >= math.log2(min(counts)) - 1e-6


@pytest.mark.parametrize("config", [LayerConfig(2, 1, 1, 1), LayerConfig(2, 2, 1, 2)])
def test_training_with_frozen_gates_stays_between_the_ends(config: LayerConfig) -> None:
    """Two objects: all is held by some start up to the lower end, nothing far beyond the upper."""
    least, most = random_gate_facts(config), frozen_gates_most(config, 2, share=1e-6)
    rng = np.random.default_rng(0)
    recipe = Recipe(learning_rate=0.1, epochs=600, schedule="cosine", positions="object",
                    stop_tau=0.0, frozen=FROZEN)  # fmt: skip

    def held(n: int, databases: int, starts: int) -> int:
        dbs = [database(matching(n), rng.integers(0, 2, n).tolist()) for _ in range(databases)]
        layers = [AttentionLayer(config, db.n_tokens, seed=i) for i, db in enumerate(dbs)]
        train_many(list(zip(layers, dbs, strict=True)), recipe, starts=starts, until="held",
                   held_at="argmax")  # fmt: skip
        return sum(evaluate(x, db).argmax == 1 for x, db in zip(layers, dbs, strict=True))

    assert held(least, databases=6, starts=16) == 6
    # by the count at most 6 x 4 in a million such databases
    assert held(most + 1, databases=6, starts=4) == 0


WRONG: list[tuple[Any, str]] = [
    (lambda db, config: random_gate_layer(db, config, tau=1.0), "strictly between 0.5 and 1"),
    (lambda db, config: random_gate_rank(db.triples, config), r"shape \(n, 2\)"),
    (lambda db, config: random_gate_rank(cast(Any, np.zeros((3, 2))), config), "must be integers"),
    (lambda db, config: frozen_gates_most(config, 1), "`n_objects` must be an integer of at least"),
    (lambda db, config: frozen_gates_most(config, 2, share=0), "above 0 and at most 1"),
    (lambda db, config: frozen_gates_most(config, 2, share=True), "above 0 and at most 1"),
    (lambda db, config: log2_assignments_held(config, -1, 2), "`n_pairs` must be an integer"),
    (lambda db, config: random_gate_facts(LayerConfig(2, 1, 1, 1, bias=True)), "without norm"),
    (lambda db, config: frozen_gates_most(LayerConfig(2, 1, 1, 1, bias=True), 2), "without norm"),
]


@pytest.mark.parametrize(("call", "words"), WRONG, ids=[words for _, words in WRONG])
def test_wrong_arguments_are_refused_in_words(call: Any, words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        call(database([(0, 1)], [0]), LayerConfig(2, 1, 1, 1))


def test_multi_valued_databases_are_refused() -> None:
    db = Database.from_triples([("a", "p", "x"), ("a", "p", "y")], multi="keep")
    with pytest.raises(MultiValuedError):
        random_gate_layer(db, LayerConfig(2, 1, 1, 1))
