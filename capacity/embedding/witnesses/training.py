"""Models that do a task on a graph, trained here and rounded to integers.

Full-batch Adam on a squared hinge loss, with a free threshold for each query that is ranked (Kingma
and Ba 2015). Rounded to integers at some scale, a model's scores are integers, and all comparisons
exact. That a search finds none proves nothing.

The scores that a task asks for, and the loss for them, come first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from capacity.embedding.proofs import Witness
from capacity.embedding.queries import QueryGraph, Task
from capacity.embedding.witnesses.forms import FORMS, Form, Rows, rows_of
from capacity.exact.types import Indices
from capacity.tensor.coordinates import distinct


class Side(NamedTuple):
    """Queries of one direction.

    Attributes
    ----------
    true : Tensor of bool, shape (n_queries, n_answers)
        The facts.
    signs : Tensor, shape (n_queries, n_answers)
        1 at facts, and -1 elsewhere.
    of : callable
        The scores of these queries, from those of all pairs of a subject and a relation.
    """

    true: Tensor
    signs: Tensor
    of: Callable[[Tensor], Tensor]


class _Loss(torch.autograd.Function):
    """The sum of the squared hinges of scores about thresholds, without copies of the scores."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, threshold: Tensor, signs: Tensor) -> Tensor:
        """Return the sum, and keep what is missing from each margin."""
        above = scores - threshold
        missing = torch.addcmul(torch.ones_like(threshold), above, signs, value=-1).relu_()
        ctx.save_for_backward(missing, signs)
        return missing.flatten().dot(missing.flatten())

    @staticmethod
    def backward(ctx: Any, *grad: Any) -> Any:
        """Return the gradients by scores and thresholds."""
        missing, signs = ctx.saved_tensors
        up = missing.mul_(signs).mul_(-2 * grad[0])
        return up, -up.sum(1, keepdim=True) if ctx.needs_input_grad[1] else None, None


class Asked:
    """The scores that a task compares, of queries with all that may answer them.

    Parameters
    ----------
    graph : QueryGraph
        The facts.
    task : str
        The task, other than exact scores.

    Attributes
    ----------
    queries : ndarray of int64, shape (n_queries, 2)
        Subject and relation of each row of scores: those with a fact for rankings, else all pairs.
    true : Tensor of bool, shape (n_queries, n_objects)
        The facts.
    """

    def __init__(self, graph: QueryGraph, task: Task) -> None:
        self.task = task
        shape = graph.places
        n_subjects, n_relations, n_objects = shape
        s, q, o = graph.placed.T
        keys = s * n_relations + q
        asked = distinct(keys) if task == "ranking" else np.arange(n_subjects * n_relations)
        true = np.zeros((len(asked), n_objects), bool)
        true[np.searchsorted(asked, keys), o] = True
        self.queries: Indices = np.stack(np.divmod(asked, n_relations), axis=1)
        self.true = torch.from_numpy(true)
        self._sides = [_side(self.true, lambda scores: scores)]
        if task == "both-sides":
            tails = self.true.any(1)
            heads = _turned(self.true, shape).any(1)
            self._sides = [
                _side(self.true, lambda scores: scores[tails]),
                _side(self.true, lambda scores: _turned(scores, shape)[heads]),
            ]

    def thresholds(self) -> list[Tensor]:
        """Return a threshold for each query of a ranking, and 0 for signs, as leaves to train."""
        if self.task == "signs":
            return [torch.zeros(1, 1)]
        return [torch.zeros(len(side.true), 1, requires_grad=True) for side in self._sides]

    def loss(self, scores: Tensor, thresholds: list[Tensor]) -> Tensor:
        """Return the squared hinge loss of scores about their thresholds."""
        parts = [
            _Loss.apply(side.of(scores), threshold, side.signs)
            for side, threshold in zip(self._sides, thresholds, strict=True)
        ]
        return torch.stack(parts).sum()

    def met(self, scores: Tensor) -> bool:
        """Return True if scores do what the task asks."""
        if self.task == "signs":
            return bool((torch.where(self.true, scores, -scores) > 0).all())
        return all(_ranked(side.of(scores), side.true) for side in self._sides)


def _side(true: Tensor, of: Callable[[Tensor], Tensor]) -> Side:
    mine = of(true)
    return Side(mine, mine.float() * 2 - 1, of)


def _turned(scores: Tensor, shape: tuple[int, int, int]) -> Tensor:
    """Return scores of pairs of a relation and an object with all subjects."""
    n_subjects, n_relations, n_objects = shape
    turned = scores.view(n_subjects, n_relations, n_objects).permute(1, 2, 0)
    return turned.reshape(n_relations * n_objects, n_subjects)


def _ranked(scores: Tensor, true: Tensor) -> bool:
    lowest = torch.where(true, scores, torch.inf).amin(1)
    highest = torch.where(true, -torch.inf, scores).amax(1)
    return bool((lowest > highest).all())


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
        Called with what is tried.

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
    """Train a model until its integer factors do what is asked, or stop."""
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
