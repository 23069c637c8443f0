"""Scores of families with a matrix for each relation, and the loss of witnesses in training."""

from __future__ import annotations

import pytest
import torch

from capacity.embedding.witnesses.forms import FORMS
from capacity.embedding.witnesses.training import _Loss


@pytest.mark.parametrize("model", ["RESCAL", "TuckER"])
@pytest.mark.parametrize("n_queries", [1, 5, 300])
def test_queries_are_a_subjects_vector_times_its_relations_matrix(
    model: str, n_queries: int
) -> None:
    """Few queries among many pairs are multiplied relation by relation, many all at once."""
    g = torch.Generator().manual_seed(n_queries)
    n, q, d = 40, 12, 5
    shapes = FORMS[model].shapes((n, q, n, n, n_queries), d)
    factors = {
        name: torch.randn(*shape, generator=g, dtype=torch.float64).requires_grad_()
        for name, shape in shapes.items()
    }
    pairs = torch.randperm(n * q, generator=g)[:n_queries]
    s, relation = pairs // q, pairs % q
    found = FORMS[model].query(factors, s, relation)
    W = (
        factors["W"]
        if model == "RESCAL"
        else torch.einsum("qp,pij->qij", factors["w"], factors["W"])
    )
    expected = torch.stack([factors["e"][a] @ W[b] for a, b in zip(s, relation, strict=True)])
    torch.testing.assert_close(found, expected)
    target = torch.randn(n_queries, d, generator=g, dtype=torch.float64)
    gradients = (torch.autograd.grad(x, [*factors.values()], target) for x in (found, expected))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("rows", [1, 6])
def test_the_loss_is_the_sum_of_squared_hinges(rows: int) -> None:
    g = torch.Generator().manual_seed(rows)
    scores, threshold = (
        torch.randn(*shape, generator=g, dtype=torch.float64).requires_grad_()
        for shape in ((6, 9), (rows, 1))
    )
    signs = torch.randn(6, 9, generator=g, dtype=torch.float64).sign()
    needed = [scores, threshold] if rows == 6 else [scores]
    mine = _Loss.apply(scores, threshold if rows == 6 else threshold.detach(), signs)
    known = (1 - signs * (scores - threshold)).relu().square().sum()
    torch.testing.assert_close(mine, known)
    gradients = (torch.autograd.grad(x * 3, needed) for x in (mine, known))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)
