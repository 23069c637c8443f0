"""Models that rank every query of a graph, trained here and rounded to integers.

Full-batch Adam on a squared hinge loss, with a free threshold for each query (Kingma and Ba 2015).
Rounded to integers at some scale, a model's scores are integers, and all comparisons exact. That a
search finds none proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from capacity.embedding.graph import QueryGraph
from capacity.embedding.witnesses.forms import FORMS, Queries, queries_of
from capacity.embedding.witnesses.witness import Witness

# steps of training before each attempt at rounding, and scales that are tried
EVERY, SCALES = 50, (4, 16, 64, 256, 1024)
RATE, BETAS = 0.03, (0.9, 0.99)
# floating-point products of integers are exact below this
EXACT = 2.0**53


def least_witness(
    graph: QueryGraph,
    model: str,
    *,
    least: int,
    start: int,
    most: int,
    steps: int,
    starts: int,
    seed: int,
    tell: Callable[[str], object] | None = None,
) -> Witness | None:
    """Look for a witness of a small dimension, by bisection.

    Parameters
    ----------
    graph : QueryGraph
        The facts.
    model : str
        A family of `FORMS`.
    least, most : int
        The smallest and the largest dimension of interest.
    start : int
        The dimension to begin with.
    steps : int
        Steps of training at most for each start.
    starts : int
        Starts at most for each dimension.
    seed : int
        Seed of the initial factors.
    tell : callable, optional
        Told what is tried.

    Returns
    -------
    Witness or None
        The one of the least dimension found.
    """
    best: Witness | None = None
    failed, d = least - 1, min(max(start, least), most)
    while d <= most:
        if tell is not None:
            tell(f"a witness of dimension {d}")
        each = (trained(graph, model, d, steps=steps, seed=seed + i) for i in range(starts))
        found = next((one for one in each if one is not None), None)
        if found is not None:
            best, most = found, d - 1
        else:
            failed = d
        if best is None:
            d = max(d + 1, round(1.5 * d)) if failed < most else most + 1
            d = min(d, most) if failed < most else d
        elif best.dimension - failed <= max(1, best.dimension // 16):
            # neighbours aren't told apart by a single run
            break
        else:
            d = (best.dimension + failed) // 2
    return best


def trained(graph: QueryGraph, model: str, d: int, *, steps: int, seed: int) -> Witness | None:
    """Train a model until its integer factors rank every query (s, q, ?), or give up."""
    form = FORMS[model]
    queries = queries_of(graph, graph.queries, entities=form.entities)
    answers = np.zeros((graph.n_queries, graph.shape[2]), bool)
    answers[graph.query_of, graph.facts[:, 2]] = True
    true = torch.from_numpy(answers)
    signs = true.float() * 2 - 1
    generator = torch.Generator().manual_seed(seed)
    factors = {
        name: _initial(shape, generator) for name, shape in form.shapes(queries.sizes, d).items()
    }
    threshold = torch.zeros(graph.n_queries, 1, requires_grad=True)
    optimiser = torch.optim.Adam([*factors.values(), threshold], lr=RATE, betas=BETAS)
    s, q, o = (torch.from_numpy(x) for x in (queries.subjects, queries.relations, queries.objects))
    for step in range(1, steps + 1):
        for group in optimiser.param_groups:
            group["lr"] = RATE * min(1.0, 2 * (1 - step / steps) + 0.02)
        scores = form.query(factors, s, q) @ form.answer(factors, o).T
        if step % EVERY == 0 and _ranked(scores.detach(), true):
            for rounded in _rounded(factors):
                if ranks(rounded, model, queries, answers):
                    return Witness(model, d, rounded)
        loss = torch.relu(1 - (scores - threshold) * signs).square().sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return None


def _initial(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    # matrices keep the length of a vector; two vectors and a third have a product of about 1
    size = shape[-1] ** (-0.5 if len(shape) == 3 else -0.25)
    return (torch.randn(*shape, generator=generator) * size).requires_grad_()


def _ranked(scores: Tensor, true: Tensor) -> bool:
    lowest = torch.where(true, scores, torch.inf).amin(1)
    highest = torch.where(true, -torch.inf, scores).amax(1)
    return bool((lowest > highest).all())


def _rounded(factors: Mapping[str, Tensor]) -> Iterator[dict[str, NDArray[np.int64]]]:
    for scale in SCALES:
        yield {
            name: np.rint(x.detach().double().numpy() * scale).astype(np.int64)
            for name, x in factors.items()
        }


def ranks(
    factors: Mapping[str, NDArray[np.int64]],
    model: str,
    queries: Queries,
    answers: NDArray[np.bool_],
) -> bool:
    """Return True if integer factors rank each query's answers above all else, exactly."""
    form = FORMS[model]
    exact = {name: torch.from_numpy(x.astype(np.float64)) for name, x in factors.items()}
    s, q, o = (torch.from_numpy(x) for x in (queries.subjects, queries.relations, queries.objects))
    h, e = form.query(exact, s, q).numpy(), form.answer(exact, o).numpy()
    largest = np.abs(h).max(initial=0) * np.abs(e).max(initial=0) * h.shape[1]
    if largest >= EXACT:
        return False
    scores = h @ e.T
    lowest = np.where(answers, scores, np.inf).min(axis=1)
    highest = np.where(answers, -np.inf, scores).max(axis=1)
    return bool((lowest > highest).all())
