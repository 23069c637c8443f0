"""Reach and reliability: some of several starts, and the share of them."""

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.errors import InvalidArgumentError
from capacity.evaluator import fit_size_law, half_size, pooled_starts, reach_and_reliability

# accuracies of the starts of some pairs
PAIRS = st.lists(st.lists(st.sampled_from([0.5, 0.9, 1.0]), min_size=4, max_size=7), min_size=1)


def seeds(pairs: list[list[float]]) -> pd.DataFrame:
    """A row for each start, as a sweep of several seeds has it."""
    return pd.DataFrame(
        [
            {
                "database_id": f"d{i}", "layer_id": f"l{i % 3}", "recipe": "r", "seed": seed,
                "status": "completed", "accuracy_p95": accuracy, "n_triples": 10 * (i + 1),
                "d_model": 2 + i % 3,
            }
            for i, starts in enumerate(pairs)
            for seed, accuracy in enumerate(starts)
        ]
    )  # fmt: skip


def starts(pairs: list[list[float]], *, until: str = "all") -> pd.DataFrame:
    """A row for each pair, as a sweep of several starts has it."""
    rows: list[dict[str, Any]] = []
    for i, shares in enumerate(pairs):
        tried = shares
        if until == "held" and 1.0 in shares:
            tried = shares[: shares.index(1.0) + 1]
        rows.append(
            {
                "database_id": f"d{i}", "layer_id": f"l{i % 3}", "recipe": "r",
                "status": "completed", "accuracy_p95": max(tried), "starts": len(shares),
                "until": until, "held_at": "0.95", "starts_tried": len(tried),
                "held_by_any": 1.0 in tried, "share_of_starts": tried.count(1.0) / len(tried),
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


@pytest.mark.slow
@given(PAIRS, st.integers(1, 4))
def test_the_reach_of_k_starts_is_the_mean_over_all_sets_of_k(
    pairs: list[list[float]], k: int
) -> None:
    counted = [np.mean([1.0 in some for some in combinations(x, k)]) for x in pairs]
    single = [np.mean([share == 1 for share in x]) for x in pairs]
    for table in (seeds(pairs), starts(pairs)):
        found = reach_and_reliability(table, of=k, n_resamples=2)
        assert found.reach == pytest.approx(np.mean(counted))
        assert found.reliability == pytest.approx(np.mean(single))
        assert (found.n_pairs, found.n_starts) == (len(pairs), sum(map(len, pairs)))
        assert found.of == k


@given(PAIRS, st.integers(1, 4))
def test_starts_that_end_at_the_first_that_holds_show_the_reach_of_the_first_k(
    pairs: list[list[float]], k: int
) -> None:
    table = starts([x[:4] for x in pairs], until="held")
    found = reach_and_reliability(table, of=k, n_resamples=2)
    assert found.reach == pytest.approx(np.mean([1.0 in x[:k] for x in pairs]))
    assert found.reliability == pytest.approx(np.mean([x[0] == 1 for x in pairs]))


def test_by_default_as_many_starts_as_every_pair_has() -> None:
    table = seeds([[1.0, 0.5, 0.5], [0.5, 0.5, 0.5, 0.5]])
    found = reach_and_reliability(table)
    assert found.of == 3
    assert found.reach == 0.5
    with pytest.raises(InvalidArgumentError, match="one has 3, and 4 are asked for"):
        reach_and_reliability(table, of=4)


def test_intervals_are_over_databases_and_layers() -> None:
    rng = np.random.default_rng(0)
    # starts of one database agree, so that more of them narrow nothing
    of_database = rng.random(12) < 0.5
    few, many = (
        reach_and_reliability(seeds([[float(one)] * n for one in of_database]), of=1)
        for n in (2, 50)
    )
    assert few.reliability_interval == many.reliability_interval
    low, high = few.reliability_interval
    assert high - low > 0.3


@pytest.mark.slow
@given(PAIRS)
def test_pooling_keeps_the_best_start_and_counts_all(pairs: list[list[float]]) -> None:
    pooled = pooled_starts(seeds(pairs))
    assert pooled["accuracy_p95"].tolist() == [max(x) for x in pairs]
    assert pooled["seed"].tolist() == [x.index(max(x)) for x in pairs]
    assert pooled["starts_tried"].tolist() == [len(x) for x in pairs]
    assert pooled["held_by_any"].tolist() == [1.0 in x for x in pairs]
    assert pooled["share_of_starts"].to_numpy() == pytest.approx(
        [x.count(1.0) / len(x) for x in pairs]
    )
    twice = pooled_starts(pooled)
    pd.testing.assert_frame_equal(twice, pooled, check_dtype=False)


def test_a_start_that_diverged_neither_holds_nor_is_kept() -> None:
    table = seeds([[1.0, 0.5]])
    table.loc[0, "status"] = "diverged"
    pooled = pooled_starts(table)
    assert pooled["seed"].tolist() == [1]
    assert pooled["share_of_starts"].tolist() == [0]


def drawn(n: int) -> list[list[float]]:
    """Starts that hold a database of size x with probability 1 / (1 + (x / d^2)^2)."""
    rng = np.random.default_rng(1)
    pairs = []
    for i in range(120):
        size, d = 10 * (i + 1), 2 + i % 3
        p = 1 / (1 + (size / (40 * d**2)) ** 2)
        pairs.append([float(x) for x in rng.random(n) < p])
    return pairs


def test_the_law_of_reliability_is_that_of_all_starts_as_runs() -> None:
    apart = seeds(drawn(8))
    pooled = pooled_starts(apart)
    by_run = fit_size_law(apart, ["d_model"], n_resamples=20)
    by_starts = fit_size_law(pooled, ["d_model"], by="reliability", n_resamples=20)
    assert by_starts.law.exponents["d_model"] == pytest.approx(by_run.law.exponents["d_model"])
    assert by_starts.law.exponents["d_model"] == pytest.approx(2, abs=0.4)
    assert by_starts.exponent_intervals()["d_model"] == pytest.approx(
        by_run.exponent_intervals()["d_model"]
    )
    assert by_starts.law.log_likelihood(pooled, by="reliability").sum() == pytest.approx(
        by_run.law.log_likelihood(apart).sum()
    )
    # more starts reach more
    reach = fit_size_law(pooled, ["d_model"], n_resamples=0).law
    assert reach.size_at({"d_model": 3}) > 1.5 * by_starts.law.size_at({"d_model": 3})


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"held_at": "argmax"}, {}, "counted, argmax; got 0.95"),
        ({}, {"tau": 0.99}, "lacks accuracy_p99"),
        ({"until": ["all", "held"]}, {}, "must have runs of one kind"),
    ],
)
def test_tables_whose_starts_answer_another_question_are_refused(
    change: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    table = starts([[1.0, 0.5], [0.5, 0.5]]).assign(**change)
    with pytest.raises(InvalidArgumentError, match=message):
        reach_and_reliability(table, **options)


def test_runs_of_which_the_first_starts_held_are_still_runs_of_several() -> None:
    # the starts were counted at another threshold, though no second one was needed
    table = starts([[1.0, 0.5]] * 2, until="held").assign(held_at="0.75", accuracy_p95=0.9)
    with pytest.raises(InvalidArgumentError, match=r"counted, 0\.75; got 0\.95"):
        reach_and_reliability(table)


def test_runs_of_one_start_are_among_those_that_end_at_the_first() -> None:
    apart = [starts([[1.0, 0.5], [0.5, 1.0]], until="held"), starts([[1.0]])]
    found = reach_and_reliability(pd.concat(apart))
    assert (found.of, found.n_pairs, found.n_starts) == (1, 3, 4)
    assert found.reach == pytest.approx(2 / 3)


def test_tables_of_several_sweeps_are_pooled() -> None:
    tables = [starts([[1.0, 0.5]] * 2).assign(layer_id=name) for name in "ab"]
    assert len(pooled_starts(pd.concat(tables))) == 4


def test_no_runs_have_no_reach() -> None:
    with pytest.raises(InvalidArgumentError, match="it is empty"):
        reach_and_reliability(seeds([[1.0]]).iloc[:0])


def test_shares_that_are_biased_are_not_pooled() -> None:
    with pytest.raises(InvalidArgumentError, match='Train with until = "all"'):
        pooled_starts(starts([[1.0, 0.5]], until="held"))


def test_a_law_of_starts_refuses_what_would_bias_it() -> None:
    pairs = drawn(4)
    size = {"n_triples": np.arange(len(pairs)) + 1, "d_model": 2}
    until = starts(pairs, until="held").assign(**size)
    assert fit_size_law(until, ["d_model"], n_resamples=0).law.steepness > 0
    with pytest.raises(InvalidArgumentError, match="no unbiased share"):
        fit_size_law(until, ["d_model"], by="reliability")
    for by in ("reach", "reliability"):
        with pytest.raises(InvalidArgumentError, match=r"counted, argmax; got 0\.95"):
            fit_size_law(starts(pairs).assign(**size, held_at="argmax"), ["d_model"], by=by)


def test_the_law_of_reliability_counts_whole_databases() -> None:
    table = pooled_starts(seeds(drawn(2)))
    with pytest.raises(InvalidArgumentError, match="`share` must be 1"):
        fit_size_law(table, ["d_model"], by="reliability", share=0.9)
    with pytest.raises(InvalidArgumentError, match="Did you mean `reach`"):
        fit_size_law(table, ["d_model"], by="reaches")  # type: ignore[arg-type]


def test_a_half_size_tells_where_shares_rise() -> None:
    shares = {10: 0.9, 20: 0.6, 40: 0.4, 80: 0.7}
    found = half_size(shares.__getitem__, list(shares))
    assert found.rises == tuple(
        (a, b)
        for a, b in zip(found.shares, list(found.shares)[1:], strict=False)
        if shares[a] < shares[b]
    )
    rising = half_size(lambda size: 0.6 if size >= 40 else 0.5, [10, 20, 40, 80])
    assert rising.rises == ((20, 40),)
