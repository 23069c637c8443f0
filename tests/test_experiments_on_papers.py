"""Measures of the experiments on the papers' remaining claims, on cases made by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from capacity.rank import paper_bound
from capacity.transformer import EncoderConfig
from experiments.decomposition import agreement
from experiments.effective_attention import norms
from experiments.facts import generators
from experiments.identifiability import parameters


def test_norms_weigh_attention_by_what_a_token_writes() -> None:
    # one head whose outputs are doubled; values of the norms 5 and 1
    pattern = torch.tensor([[[[0.5, 0.5], [0.1, 0.9]]]])
    v = torch.tensor([[[[3.0, 4.0], [0.0, 1.0]]]])
    shares = norms.norm_shares(pattern, v, 2 * torch.eye(2)[None])
    # 5 to 1, and 0.5 to 0.9
    expected = torch.tensor([[[[5 / 6, 1 / 6], [5 / 14, 9 / 14]]]])
    torch.testing.assert_close(shares, expected)


def test_rank_correlation_is_scipys() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.random((2, 3, 7))
    found = norms.rank_correlation(torch.tensor(one), torch.tensor(other))
    expected = [spearmanr(a, b).statistic for a, b in zip(one, other, strict=True)]
    assert found.tolist() == pytest.approx(expected)


def test_a_generator_is_what_it_says() -> None:
    for seed in range(5):
        own = generators.drawn(np.random.default_rng(seed), 1.0, 3, "own", "uniform")
        n_subjects, n_predicates, n_objects = own.shape
        # every pair has a fact, and no predicate has more than its three objects
        assert own.is_functional
        assert own.n_triples == n_subjects * n_predicates <= generators.MOST
        assert n_objects <= 3 * n_predicates
        assert paper_bound(own) <= 3 * n_predicates
        shared = generators.drawn(np.random.default_rng(seed), 0.5, 3, "shared", "Zipf")
        assert shared.shape[2] <= 3


def test_objects_by_zipfs_law_are_unequal() -> None:
    drawn = [
        generators.drawn(np.random.default_rng(i), 1.0, 10, "shared", "Zipf") for i in range(40)
    ]
    counts = np.zeros(10)
    for db in drawn:
        names = [db.tokens[i].text for i in db.object_ids[db.triples[:, 2]]]
        counts += np.bincount([int(name.split(".")[1]) for name in names], minlength=10)
    # the second token has half of the weight of the first
    assert counts[0] / counts[1] == pytest.approx(2, rel=0.15)


def test_agreement_is_beside_that_of_independent_answers() -> None:
    # all sums answer 0, 1, 0, 1, but the last, which answers 0 always
    answers = torch.tensor([0, 1, 0, 1]).repeat(len(agreement.SUMS), 1)
    answers[-1] = 0
    rows = agreement.agreements(answers).to_dict("records")
    assert len(rows) == 15 * 14 / 2
    found = {(row["one"], row["other"]): (row["agreement"], row["independent"]) for row in rows}
    first, second, last = agreement.SUMS[0], agreement.SUMS[1], agreement.SUMS[-1]
    assert found[first, second] == (1, 0.5)
    assert found[first, last] == (0.5, 0.5)


@pytest.mark.parametrize("d_head_qk", parameters.QUERY_KEY)
def test_a_wide_con_has_as_many_parameters_as_add(d_head_qk: int) -> None:
    add = EncoderConfig(100, 3, 64, 128, 8, d_head_qk, 512, "add")
    wide = parameters.wide_con(add)
    # values of 16 dimensions for 128 in each of 8 heads: 8 * 129 * 112, over 257 for each unit
    assert wide.d_feed_forward == 512 + 450
    assert abs(wide.n_parameters / add.n_parameters - 1) < parameters.WITHIN
