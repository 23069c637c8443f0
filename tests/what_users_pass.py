"""What users pass: right and wrong values of every kind, and calls of public functions with them.

A call is drawn for one public callable: most arguments are of the annotated type, one at most is of
any, and some calls lack an argument, or have one too many. Values are small, or so large that they
must be refused.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from hypothesis import strategies as st

import capacity
from capacity import AttentionLayer, Database, LayerConfig, Recipe, rank_interval
from capacity.door.annotations import fits, hints_of
from capacity.tensor import matrix_multiplication

ROOMS = ("tensor", "database", "rank", "stores", "layer", "evaluator", "embedding", "plots",
         "recall", "report", "sweep", "transformer", "testing")  # fmt: skip
# they change what other tests find
_CHANGE = ("register_", "unregister_")
# made by the million, so that they don't pass the door; and types that can't be made
NOT_CALLED = {"Term", "Text", "Argument", "TwoEnds", "Counts"}


@dataclass(frozen=True)
class PublicCall:
    """A public function, class or method, and the function that has its signature."""

    name: str
    call: Callable[..., Any]
    raw: Callable[..., Any]
    bound: bool

    def parameters(self) -> list[inspect.Parameter]:
        """Parameters that a user gives."""
        return list(inspect.signature(self.raw).parameters.values())[self.bound :]


@cache
def values() -> tuple[Any, ...]:
    """Values of the kinds that users pass, right or wrong."""
    db = Database.from_triples([("a", "p", "x"), ("b", "p", "y"), ("a", "q", "x")])
    config, interval = LayerConfig(2, 1), rank_interval(db)
    layer, ones = AttentionLayer(config, db.n_tokens), np.ones((2, 1), int)
    return (
        None, True, 0, 1, 2, -1, 10**9, 2**70, 0.5, 0.95, float("nan"), float("inf"), 1 + 2j,
        "", "a", "none.tsv", "quick", "argmax", "x" * 10_000, "\0", b"x", Path("none.tsv"), Path(),
        [], [1, 2], [0.5, float("nan")], [[0, 0, 0]], [[1, 2], [3]], [("a", "p", "x")], ["a", "b"],
        [None], [[]], {}, {"a": 1}, {"a": None}, {1, 2}, range(3), (), (1,), (2, 2), (2, 2, 2),
        (10**9,) * 3, slice(2), object(), lambda *_values: None,
        np.zeros((2, 2)), np.ones((3, 2), int), np.zeros((2, 2, 2), int), np.zeros((0, 3), int),
        np.array([float("nan")]), np.full((2, 2, 2), np.inf), np.array(3), np.array(["a", "b"]),
        np.int64(2), [ones] * 3, pd.DataFrame({"a": [1, 2], "b": [0.1, None]}), pd.DataFrame(),
        pd.Series([1, 2]), torch.zeros(2, 2), torch.zeros(0, 2), torch.tensor([[0, 1]]),
        db, [db], [db, None], config, layer, [layer], Recipe(epochs=2), interval, interval.upper,
        matrix_multiplication(2, 2, 1),
    )  # fmt: skip


def public_calls(room: str) -> Iterator[PublicCall]:
    """Yield the public functions and classes of a room, and methods of what `values` has."""
    face = importlib.import_module(f"capacity.{room}") if room else capacity
    instances = {type(value): value for value in values()}
    for name in getattr(face, "__all__"):  # noqa: B009
        value = getattr(face, name)
        if name.startswith(_CHANGE) or name in NOT_CALLED:
            continue
        if inspect.isfunction(value):
            yield PublicCall(name, value, value, bound=False)
        elif inspect.isclass(value) and not issubclass(value, BaseException | dict):
            if not value.__module__.startswith("capacity"):
                continue
            making = value.__new__ if issubclass(value, tuple) else value.__init__
            yield PublicCall(name, value, making, bound=True)
            for method, member in vars(value).items():
                said = f"{name}.{method}"
                if method.startswith("_"):
                    continue
                if isinstance(member, classmethod | staticmethod):
                    bound = isinstance(member, classmethod)
                    yield PublicCall(said, getattr(value, method), member.__func__, bound)
                elif inspect.isfunction(member) and value in instances:
                    yield PublicCall(said, getattr(instances[value], method), member, bound=True)


@cache
def fitting(raw: Callable[..., Any], name: str) -> tuple[Any, ...]:
    """Values of `values` that are of the type of a parameter."""
    kind = hints_of(raw).get(name, object)
    return tuple(value for value in values() if fits(value, kind)) or values()


@st.composite
def arguments(draw: st.DrawFn, public: PublicCall) -> tuple[list[Any], dict[str, Any]]:
    """Arguments of a call, by place and by name."""
    parameters = public.parameters()
    by_place: list[Any] = []
    by_name: dict[str, Any] = {}
    n = len(parameters)
    wrong = draw(st.integers(-1, n - 1))
    lacking = draw(st.integers(-9, n - 1))
    for i, one in enumerate(parameters):
        if i == lacking or one.kind is one.VAR_KEYWORD:
            continue
        if one.kind is one.VAR_POSITIONAL:
            by_place += draw(st.lists(st.sampled_from(values()), max_size=2))
            continue
        if one.default is not one.empty and i != wrong and draw(st.integers(0, 3)):
            continue
        pool = values() if i == wrong else fitting(public.raw, one.name)
        value = draw(st.sampled_from(pool))
        if one.kind is one.POSITIONAL_ONLY:
            by_place.append(value)
        else:
            by_name[one.name] = value
    if draw(st.integers(0, 19)) == 19:
        by_name["timeout_"] = 1
    return by_place, by_name
