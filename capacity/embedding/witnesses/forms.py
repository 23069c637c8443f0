"""The factors of each family of models, and its scores <h(s, q), e(o)> as torch computes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from capacity.embedding.queries import QueryGraph
from capacity.exact.types import Indices

Shapes: TypeAlias = dict[str, tuple[int, ...]]
Sizes: TypeAlias = tuple[int, int, int, int, int]
# pairs of a subject and a relation, for each query, whose vectors are computed all the same
_MANY = 32


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of factors that scores are made of.

    Attributes
    ----------
    subjects, relations : Tensor of int64, shape (n_queries,)
        Of each query.
    objects : Tensor of int64, shape (n_objects,)
        Of each object.
    sizes : tuple of int
        Numbers of subjects, relations, objects, entities and queries.
    """

    subjects: Tensor
    relations: Tensor
    objects: Tensor
    sizes: Sizes


def rows_of(graph: QueryGraph, queries: Indices, *, entities: bool) -> Rows:
    """Return the rows of queries, by entities or by subjects and objects.

    Where subjects and objects have separate vectors they are different entities, the subjects
    first.
    """
    k, q, v = graph.places
    apart = entities and graph.entities is None
    objects = torch.arange(v) + (k if apart else 0)
    s, relation = torch.from_numpy(queries).T
    return Rows(s, relation, objects, (k, q, v, k + v if apart else graph.n_entities, len(queries)))


@dataclass(frozen=True)
class Form:
    """The factors of a family, and the two sides of its scores.

    Attributes
    ----------
    shapes : callable
        ``shapes(sizes, d)`` names the factors, with their shapes.
    query, answer : callables
        Vectors of queries and of objects, given factors by name.
    entities : bool
        Whether subjects and objects are rows of the same factors.
    """

    shapes: Callable[[Sizes, int], Shapes]
    query: Callable[[Mapping[str, Tensor], Tensor, Tensor], Tensor]
    answer: Callable[[Mapping[str, Tensor], Tensor], Tensor]
    entities: bool = True


def _joined(*parts: Tensor) -> Tensor:
    return torch.cat(parts, dim=-1)


def _by_matrix(entities: Tensor, matrices: Tensor, subjects: Tensor, relation: Tensor) -> Tensor:
    """Multiply each subject's vector by its relation's matrix."""
    n, (n_relations, _, d) = len(entities), matrices.shape
    if n * n_relations <= _MANY * len(subjects):
        # one large product, of all subjects with all relations
        every = (entities @ matrices.transpose(0, 1).flatten(1)).view(n * n_relations, d)
        return every.index_select(0, subjects * n_relations + relation)
    order = relation.argsort(stable=True)
    counts = relation.bincount(minlength=n_relations).tolist()
    groups = entities.index_select(0, subjects[order]).split(counts)
    found = torch.cat([x @ matrix for x, matrix in zip(groups, matrices, strict=True)])
    return found.index_select(0, order.argsort())


FORMS: dict[str, Form] = {
    "linear": Form(
        lambda n, d: {"h": (n[4], d), "e": (n[2], d)},
        lambda f, *_: f["h"],
        lambda f, _: f["e"],
        entities=False,
    ),
    "CP": Form(
        lambda n, d: {"a": (n[0], d), "b": (n[1], d), "c": (n[2], d)},
        lambda f, s, q: f["a"][s] * f["b"][q],
        lambda f, _: f["c"],
        entities=False,
    ),
    "DistMult": Form(
        lambda n, d: {"e": (n[3], d), "w": (n[1], d)},
        lambda f, s, q: f["e"][s] * f["w"][q],
        lambda f, o: f["e"][o],
    ),
    "ComplEx": Form(
        lambda n, d: {"x": (n[3], d), "y": (n[3], d), "u": (n[1], d), "v": (n[1], d)},
        lambda f, s, q: _joined(
            f["x"][s] * f["u"][q] - f["y"][s] * f["v"][q],
            f["x"][s] * f["v"][q] + f["y"][s] * f["u"][q],
        ),
        lambda f, o: _joined(f["x"][o], f["y"][o]),
    ),
    "SimplE": Form(
        lambda n, d: {"a": (n[3], d), "b": (n[3], d), "v": (n[1], d), "w": (n[1], d)},
        lambda f, s, q: _joined(f["a"][s] * f["v"][q], f["b"][s] * f["w"][q]),
        lambda f, o: _joined(f["b"][o], f["a"][o]),
    ),
    "RESCAL": Form(
        lambda n, d: {"e": (n[3], d), "W": (n[1], d, d)},
        lambda f, s, q: _by_matrix(f["e"], f["W"], s, q),
        lambda f, o: f["e"][o],
    ),
    "TuckER": Form(
        lambda n, d: {"e": (n[3], d), "w": (n[1], min(n[1], d)), "W": (min(n[1], d), d, d)},
        lambda f, s, q: _by_matrix(f["e"], (f["w"] @ f["W"].flatten(1)).unflatten(
            1, f["W"].shape[1:]), s, q),
        lambda f, o: f["e"][o],
    ),
}  # fmt: skip
