"""Databases, bisections and numbers of the experiments on n tokens, noise and sub-tensors."""

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest

from capacity.database import Database
from experiments.claims import n_tokens, noise, noise_numbers, sub_tensors


@pytest.mark.parametrize("n", n_tokens.TOKENS)
def test_databases_of_n_tokens_are_nested_functional_and_of_one_vocabulary(n: int) -> None:
    small, large = (n_tokens.database_of(n, size, 1) for size in (50, 566))
    assert small.arity == n
    assert small.is_functional
    assert (len(small), len(large), len(small & large)) == (50, 566, 50)
    # 48 tokens of keys and 16 objects, in whatever number of columns
    assert large.n_tokens == n_tokens.KEYS + n_tokens.OBJECTS
    assert small != n_tokens.database_of(n, 50, 2)


@pytest.mark.parametrize("limit", [0, 18, 99, 100, 400, 566])
def test_bisection_finds_the_largest_size_that_is_held(limit: int) -> None:
    asked: list[int] = []

    def is_held(size: int) -> bool:
        asked.append(size)
        return size <= limit

    held = [size for size in n_tokens.SIZES if size <= limit]
    assert n_tokens.largest_held(is_held) == (held[-1] if held else None)
    assert len(asked) <= 4


@pytest.mark.parametrize(("b", "verdict"), [(0.5, "holds here"), (1.5, "not seen here")])
def test_the_exponent_of_sizes_that_follow_a_law_is_found(b: float, verdict: str) -> None:
    rows: list[dict[str, Any]] = []
    for layer, level in (("d3", 150.0), ("d4", 300.0), ("d5", 350.0)):
        for seed, n, loss in [(s, n, "both") for s in (0, 1) for n in (3, 4, 5)]:
            size = min(n_tokens.SIZES, key=lambda x: abs(np.log(x / (level * (n / 3) ** -b))))
            rows += [
                {"layer_id": layer, "seed": seed, "n_tokens": n, "loss": loss, "size": at,
                 "held": at <= size, "frozen": "", "database_rank_bound": at}
                for at in n_tokens.SIZES
            ]  # fmt: skip
    found = n_tokens.numbers({"starts": pd.DataFrame(rows)})
    # sizes are half an octave apart, 0.35 in the logarithm, and log(5/3) is 0.51
    assert found["exponents"]["both"]["value"] == pytest.approx(b, abs=0.35)
    assert found["hypotheses"]["both"] == verdict


def test_pooled_copies_count_their_facts() -> None:
    clean = Database.from_triples([("a", "p", "x"), ("b", "p", "y"), ("c", "p", "z")])
    copies = [clean, clean.with_noise(1.0, 1), clean]
    db, weights = noise.pooled(copies, clean)
    counts = Counter(fact for copy in copies for fact in copy)
    assert dict(zip(db, weights.tolist(), strict=True)) == counts
    assert noise.clean_majorities(db, weights, clean) == 1
    # without a clean copy the clean facts are there, and are no majority
    db, weights = noise.pooled(copies[1:2] * 2, clean)
    assert set(clean) <= set(db)
    assert sorted(weights.tolist()) == [0.1] * 3 + [2] * 3
    assert noise.clean_majorities(db, weights, clean) == 0
    # of two objects as often neither is the majority
    assert noise.clean_majorities(*noise.pooled(copies[:2], clean), clean) == 0


@pytest.mark.parametrize("kind", noise.KINDS)
@pytest.mark.parametrize("m", noise.SEVERAL)
def test_pairs_have_m_objects_with_their_probabilities(m: int, kind: str) -> None:
    db, weights = noise.several_objects(16, m, kind, 0)
    assert (db.n_pairs, len(db)) == (16, 16 * m)
    expected = [1.0] * m if kind == "alike" else [1 / (j + 1) for j in range(m)]
    of: dict[Any, list[float]] = {}
    for (*pair, _), weight in zip(db, weights, strict=True):
        of.setdefault(tuple(pair), []).append(weight)
    assert all(sorted(each, reverse=True) == expected for each in of.values())


def test_resistance_in_the_order_of_the_weights_is_a_correlation_of_one() -> None:
    # ten facts, and layers of which each recalls the most frequent ones
    weight = 1 / np.arange(1.0, 11)
    rows = [
        {"database_id": f"many-{seed}", "exponent": 1.0, "weight": weight[i],
         **{f"d{d}-h4-qk2-vo2": 4 * (i < d) for d in range(1, 10)}}
        for seed in (0, 1) for i in range(10)
    ]  # fmt: skip
    found = noise_numbers.frequency_numbers(pd.DataFrame(rows))["1.0"]
    assert found["correlation"]["mean"] == pytest.approx(1)
    # nine layers: the first two facts are recalled by 9 and 8 of them
    assert found["recalled"][0]["mean"] == pytest.approx((9 + 8) / 18)
    assert found["by_layer"]["d3-h4-qk2-vo2"] == pytest.approx(0.3)


@pytest.mark.parametrize("part", sub_tensors.PARTS)
def test_a_part_has_its_share(part: str) -> None:
    db = sub_tensors.without_structure(0)
    mask = sub_tensors.mask_of(db, part, 0.5, np.random.default_rng(0))
    kept = db.subset(mask)
    if part == "facts":
        assert len(kept) == 60
    else:
        assert kept.shape[0] <= 20
    if part == "subjects":
        # all facts of the subjects that are kept
        subjects = db.tuples[mask, 0]
        assert np.array_equal(mask, np.isin(db.tuples[:, 0], subjects))


def test_ranks_in_proportion_to_the_facts_hold_and_others_do_not() -> None:
    def table(rank_of_half: int) -> dict[str, pd.DataFrame]:
        rows = [
            {"kind": "some", "database_id": f"some-{i}", "n_triples": 40, "known": True, "rank": 10,
             "part": part, "share": share, "facts": int(40 * share),
             "lower": rank_of_half, "upper": rank_of_half}
            for i in range(12) for part in sub_tensors.PARTS for share in (0.5,) for _ in range(4)
        ]  # fmt: skip
        return {"parts": pd.DataFrame(rows)}

    verdicts = {rank: sub_tensors.numbers(table(rank))["hypotheses"]["some"] for rank in (5, 7, 10)}
    # half of the rank is in proportion, and all of it needs no scaling
    assert verdicts == {5: "holds here", 7: "not seen here", 10: "holds here"}
