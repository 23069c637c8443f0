import numpy as np
import pandas as pd
import pytest

from capacity.evaluator import (
    add_size_columns,
    capacity_factor,
    cluster_bootstrap,
    compare_measures,
    fit_law,
    mean_interval,
    memorised_runs,
    percentile_interval,
    simultaneous_intervals,
)


def runs(
    *, factor: float = 2.5, exponent: float = 1.0, steepness: float = 4.0, n: int = 4000, seed=0
) -> pd.DataFrame:
    """Runs that follow the law, of 200 layers on 300 databases."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 110, 300)
    database = rng.integers(300, size=n)
    bounds = rng.integers(2, 31, 200)
    layer = rng.integers(200, size=n)
    bound = bounds[layer]
    score = steepness * (np.log(factor) + exponent * np.log(bound) - np.log(sizes[database]))
    return pd.DataFrame(
        {
            "database_id": [f"random-{i}" for i in database],
            "layer_id": layer,
            "database_rank_bound": sizes[database],
            "layer_rank_bound": bound,
            "noise": np.exp(rng.normal(size=n)),
            "status": "completed",
            "accuracy_p95": (rng.random(n) < 1 / (1 + np.exp(-score))).astype(float),
        }
    )


def test_the_fit_finds_the_law_that_runs_follow() -> None:
    law = fit_law(runs(exponent=0.8, n=100_000), 0.95)
    assert law.factor == pytest.approx(2.5, rel=0.05)
    assert law.exponent == pytest.approx(0.8, rel=0.03)
    assert law.steepness == pytest.approx(4.0, rel=0.05)


@pytest.mark.slow
def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    found = [capacity_factor(runs(n=1000, seed=i), 0.95, n_resamples=60) for i in range(20)]
    covered = sum(f.factor_interval[0] <= 2.5 <= f.factor_interval[1] for f in found)
    # 19 expected; 15 or less comes once in 400 times
    assert covered >= 15
    # and they aren't all there is
    assert all(f.factor_interval[1] / f.factor_interval[0] < 1.5 for f in found)


def test_held_out_likelihood_prefers_what_the_runs_depend_on() -> None:
    table = runs()
    pairs = [
        ("noise", "layer_rank_bound"),
        ("database_rank_bound", "layer_rank_bound"),
        ("database_rank_bound", "noise"),
    ]
    found = compare_measures(table, pairs, 0.95, n_resamples=200)
    best, *others = found.to_dict("records")
    assert (best["size"], best["capacity"]) == pairs[1]
    assert best["behind"] == 0
    assert all(row["behind_low"] > 0 for row in others)
    # the truth's own likelihood is about as good
    p = 1 / (
        1 + np.exp(-4 * (np.log(2.5 * table["layer_rank_bound"] / table["database_rank_bound"])))
    )
    truth = np.log(np.where(table["accuracy_p95"] == 1, p, 1 - p)).mean()
    assert best["log_likelihood"] == pytest.approx(truth, abs=0.01)


def test_the_size_at_a_capacity_is_where_so_many_memorise() -> None:
    table = runs(exponent=0.8, n=50_000)
    found = capacity_factor(table, 0.95, at=(10, 20), n_resamples=20)
    for capacity, ratio in found.ratios.items():
        # half of the runs at size = 2.5 capacity^0.8
        assert ratio == pytest.approx(2.5 * capacity**-0.2, rel=0.05)
        low, high = found.ratio_intervals[capacity]
        assert low < ratio < high
    # logit(0.9) = 2.197, and steepness 4
    asked = capacity_factor(table, 0.95, at=(10,), probability=0.9, n_resamples=2)
    assert asked.ratios[10] / found.ratios[10] == pytest.approx(np.exp(-2.197 / 4), rel=0.02)


def test_mean_accuracy_is_fitted_as_a_fraction() -> None:
    # four facts a run, each known as the law says
    rng = np.random.default_rng(1)
    table = runs(n=20_000)
    score = 4 * np.log(2.5 * table["layer_rank_bound"] / table["database_rank_bound"])
    known = rng.binomial(4, 1 / (1 + np.exp(-score))) / 4
    law = fit_law(table.assign(**{"accuracy_p95": known}), 0.95, share=None, exponent=1.0)
    assert law.factor == pytest.approx(2.5, rel=0.03)
    assert law.steepness == pytest.approx(4, rel=0.05)


def test_sizes_that_separate_the_runs_have_a_middle() -> None:
    table = runs()
    sharp = (table["database_rank_bound"] < 3 * table["layer_rank_bound"]).astype(float)
    law = fit_law(table.assign(**{"accuracy_p95": sharp}), 0.95)
    assert law.factor * 10**law.exponent == pytest.approx(30, rel=0.05)
    assert law.steepness > 50


def test_memorising_is_by_share_and_never_diverged() -> None:
    table = pd.DataFrame(
        {"status": ["completed", "completed", "diverged"], "accuracy_p95": [0.96, 1.0, np.nan]}
    )
    assert memorised_runs(table, 0.95).tolist() == [False, True, False]
    assert memorised_runs(table, 0.95, share=0.95).tolist() == [True, True, False]
    with pytest.raises(ValueError, match="`share` must be above 0"):
        memorised_runs(table, 0.95, share=0)
    with pytest.raises(ValueError, match=r"lacks accuracy_p75"):
        memorised_runs(table, 0.75)


def test_runs_that_all_do_the_same_have_no_law() -> None:
    table = runs().assign(**{"accuracy_p95": 1.0})
    with pytest.raises(ValueError, match=r"of 4000, all did at 0\.95"):
        fit_law(table, 0.95)
    with pytest.raises(ValueError, match="`noise` must be positive"):
        fit_law(runs().assign(noise=0.0), 0.95, size="noise")


def crossed(seed: int, n: int = 1500) -> tuple[np.ndarray, pd.DataFrame]:
    """Values of runs whose databases and layers each add an error of their own; their mean is 0."""
    rng = np.random.default_rng(seed)
    groups = pd.DataFrame({"database_id": rng.integers(150, size=n),
                           "layer_id": rng.integers(60, size=n)})  # fmt: skip
    of_databases, of_layers = rng.normal(size=150), rng.normal(size=60)
    return (of_databases[groups["database_id"]] + of_layers[groups["layer_id"]]
            + rng.normal(size=n)), groups  # fmt: skip


@pytest.mark.slow
def test_intervals_of_runs_that_share_layers_need_both_factors() -> None:
    covered = {"both": 0, "databases": 0}
    for seed in range(100):
        values, groups = crossed(seed)
        for name, by in (("both", groups), ("databases", groups["database_id"])):
            low, high = mean_interval(values, by, n_resamples=200)
            covered[name] += low <= 0 <= high
    # of 95 expected; 89 or less comes once in 80 times
    assert covered["both"] >= 89
    assert covered["databases"] < 85


def test_databases_and_layers_are_drawn_independently() -> None:
    _, groups = crossed(0, 400)
    every = np.array(list(cluster_bootstrap(groups, 300)))
    assert every.sum(axis=1).all()
    for name in ("database_id", "layer_id"):
        # a group is drawn once on average, whatever else its runs share
        means = pd.DataFrame(every.mean(axis=0)).groupby(groups[name]).mean()
        assert float(means.to_numpy().mean()) == pytest.approx(1, abs=0.1)
    weights = every[0]
    table = groups.assign(weight=weights).drop_duplicates().pivot_table(
        "weight", "database_id", "layer_id"
    )  # fmt: skip
    # a product: every two rows are multiples of one another where both have runs
    wide = table.to_numpy()
    first = wide[np.nanargmax(np.nanmax(wide, axis=1))]
    for row in wide:
        shared = np.isfinite(row) & np.isfinite(first) & (first > 0)
        assert len(set(row[shared] / first[shared])) <= 1
    with pytest.raises(ValueError, match="must have a group for each run"):
        next(cluster_bootstrap([], 1))


@pytest.mark.slow
def test_simultaneous_intervals_hold_at_once() -> None:
    rng = np.random.default_rng(0)
    hits = {"each": 0, "all": 0}
    for _ in range(200):
        sample = rng.normal(size=(200, 12))
        draws = np.array([sample.T @ w / w.sum() for w in cluster_bootstrap(np.arange(200), 300)])
        at_once = simultaneous_intervals(sample.mean(axis=0), draws)
        one_by_one = [percentile_interval(column) for column in draws.T]
        hits["all"] += all(low <= 0 <= high for low, high in at_once)
        hits["each"] += all(low <= 0 <= high for low, high in one_by_one)
    # 190 and 0.95^12 of 200 expected
    assert hits["all"] >= 180
    assert hits["each"] < 140


def test_whole_databases_are_drawn() -> None:
    groups = ["a"] * 3 + ["b"] * 2 + ["c"]
    for weights in cluster_bootstrap(groups, 20):
        assert len(set(weights[:3])) == len(set(weights[3:5])) == 1
        assert weights[0] + weights[3] + weights[5] == 3
    # as many databases as runs: the usual interval of a mean
    low, high = mean_interval(np.arange(400) % 2, np.arange(400))
    assert (low, high) == pytest.approx((0.45, 0.55), abs=0.01)


def test_bits_name_the_objects_of_all_facts() -> None:
    table = pd.DataFrame(
        {"n_triples": [10, 3], "n_objects": [8, 1], "n_parameters": [4, 4],
         "n_embedding_parameters": [6, 6]}
    )  # fmt: skip
    found = add_size_columns(table)
    # 10 facts of 3 bits; 3 facts of none
    assert found["database_bits"].tolist() == [30.0, 1.0]
    assert found["n_all_parameters"].tolist() == [10, 10]
