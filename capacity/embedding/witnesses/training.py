"""Models that do a task on a graph, trained here and rounded to integers.

Full-batch Adam on a squared hinge loss, with a free threshold for each query that is ranked (Kingma
and Ba 2015).
Rounded to integers at some scale, a model's scores are integers, and all comparisons exact. That a
search finds none proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from capacity.embedding.graphs.queries import QueryGraph
from capacity.embedding.tasks import Task
from capacity.embedding.witnesses.asked import Asked
from capacity.embedding.witnesses.forms import FORMS, Form, Rows, rows_of
from capacity.embedding.witnesses.witness import Witness

# steps of training before each attempt at rounding, and scales that are tried
EVERY, SCALES = 50, (4, 16, 64, 256, 1024)
RATE, BETAS = 0.03, (0.9, 0.99)
# floating-point products of integers are exact below this
EXACT = 2.0**53


def least_witness(
    graph: QueryGraph,
    model: str,
    task: Task = "ranking",
    *,
    least: int,
    start: int,
    most: int,
    steps: int,
    starts: int,
    seed: int,
    tell: Callable[[str], object] | None = None,
) -> tuple[Witness | None, int]:
    """Look for a witness of a small dimension, by bisection.

    Parameters
    ----------
    graph : QueryGraph
        The facts.
    model : str
        A family of `FORMS`.
    task : str
        What the scores must do; not exact scores.
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
    witness : Witness or None
        The one of the least dimension found.
    failed : int
        The largest dimension that was tried in vain; `least` - 1 if none was.
    """
    best: Witness | None = None
    asked = Asked(graph, task)
    failed, d = least - 1, min(max(start, least), most)
    while d <= most:
        if tell is not None:
            tell(f"a witness of dimension {d}")
        each = (trained(graph, model, asked, d, steps=steps, seed=seed + i) for i in range(starts))
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
    return best, failed


def trained(
    graph: QueryGraph, model: str, asked: Asked, d: int, *, steps: int, seed: int
) -> Witness | None:
    """Train a model until its integer factors do what is asked, or give up."""
    form = FORMS[model]
    rows = rows_of(graph, asked.queries, entities=form.entities)
    generator = torch.Generator().manual_seed(seed)
    factors = {
        name: _initial(shape, generator) for name, shape in form.shapes(rows.sizes, d).items()
    }
    thresholds = asked.thresholds()
    free = [x for x in (*factors.values(), *thresholds) if x.requires_grad]
    optimiser = torch.optim.Adam(free, lr=RATE, betas=BETAS, fused=True)
    for step in range(1, steps + 1):
        for group in optimiser.param_groups:
            group["lr"] = RATE * min(1.0, 2 * (1 - step / steps) + 0.02)
        h = form.query(factors, rows.subjects, rows.relations)
        scores = h @ form.answer(factors, rows.objects).T
        if step % EVERY == 0 and asked.met(scores.detach()):
            for rounded in _rounded(factors):
                if does(rounded, form, rows, asked):
                    return Witness(model, d, rounded)
        optimiser.zero_grad()
        asked.loss(scores, thresholds).backward()
        optimiser.step()
    return None


def _initial(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    # matrices keep the length of a vector; two vectors and a third have a product of about 1
    size = shape[-1] ** (-0.5 if len(shape) == 3 else -0.25)
    return (torch.randn(*shape, generator=generator) * size).requires_grad_()


def _rounded(factors: Mapping[str, Tensor]) -> Iterator[dict[str, NDArray[np.int64]]]:
    for scale in SCALES:
        yield {
            name: np.rint(x.detach().double().numpy() * scale).astype(np.int64)
            for name, x in factors.items()
        }


def does(factors: Mapping[str, NDArray[np.int64]], form: Form, rows: Rows, asked: Asked) -> bool:
    """Return True if integer factors do what is asked, exactly."""
    exact = {name: torch.from_numpy(x.astype(np.float64)) for name, x in factors.items()}
    h = form.query(exact, rows.subjects, rows.relations)
    e = form.answer(exact, rows.objects)
    if h.abs().max() * e.abs().max() * h.shape[1] >= EXACT:
        return False
    return asked.met(h @ e.T)
