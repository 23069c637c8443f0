"""The door of every public name: wrong calls end in a sentence of the library, or in a result."""

from __future__ import annotations

import inspect
import pickle
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import capacity
from capacity import AttentionLayer, Database, LayerConfig, cp_estimate, evaluator, rank_interval
from capacity.database import as_database
from capacity.door.calls import through_door
from capacity.errors import CapacityError, InvalidTypeError, MultiValuedWarning
from capacity.plots import plot_accuracy_grid
from capacity.tensor import from_coo, matrix_multiplication
from tests.tiers import examples
from tests.what_users_pass import ROOMS, PublicCall, arguments, public_calls

# a search may take longer than this, and is ended
MOST_SECONDS = 3.0


class _LateError(BaseException):
    """A call that takes long, and isn't wrong."""


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let calls that write files write them here, and draw on no screen."""
    monkeypatch.chdir(tmp_path)
    mpl.use("agg")

    def late(_signal: int, _frame: Any) -> None:
        raise _LateError

    before = signal.signal(signal.SIGALRM, late)
    yield
    signal.signal(signal.SIGALRM, before)


def try_calls(data: st.DataObject, calls: list[PublicCall], n: int) -> None:
    """Make some calls; each must end in a result or an error of the library."""
    for _ in range(n):
        public = data.draw(st.sampled_from(calls))
        by_place, by_name = data.draw(arguments(public))
        signal.setitimer(signal.ITIMER_REAL, MOST_SECONDS)
        said = "a result"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                public.call(*by_place, **by_name)
        except CapacityError as error:
            said = str(error)
        except _LateError:
            pass
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        assert said
        assert "\n" not in said


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="it ends calls by a signal")
@pytest.mark.parametrize("room", ["", *ROOMS])
@settings(
    max_examples=examples(300, part=10),
    # a call has few arguments, and shrinking takes minutes
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_no_public_call_ends_in_an_error_of_python_or_numpy(
    room: str, elsewhere: None, data: st.DataObject
) -> None:
    try_calls(data, list(public_calls(room)), 10)


def all_calls() -> Iterator[PublicCall]:
    for room in ("", *ROOMS):
        yield from public_calls(room)


def test_every_public_call_names_an_argument_that_it_has_not(elsewhere: None) -> None:
    n_calls = 0
    for public in all_calls():
        takes_any = any(one.kind is one.VAR_KEYWORD for one in public.parameters())
        if takes_any or inspect.isgeneratorfunction(public.raw):
            continue
        with pytest.raises(CapacityError, match=r"no_such_option|nosuchoption|needs"):
            public.call(no_such_option=1)
        n_calls += 1
    assert n_calls > 300


def test_every_public_call_names_the_arguments_that_it_lacks(elsewhere: None) -> None:
    n_calls = 0
    for public in all_calls():
        lacking = [
            one.name
            for one in public.parameters()
            if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        ]
        if not lacking:
            continue
        with pytest.raises(InvalidTypeError, match=f"needs `{lacking[0]}`"):
            public.call()
        n_calls += 1
    assert n_calls > 250


DB = Database.from_triples([("a", "p", "x"), ("b", "p", "y")])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: rank_interval(DB, timeout=10),  # type: ignore[call-arg]
         "`rank_interval` has no argument `timeout`; it has of, effort, "),
        (lambda: rank_interval(DB, efort="quick"),  # type: ignore[call-arg]
         r"Did you mean `effort`\?"),
        (lambda: rank_interval(DB, "quick"),  # type: ignore[call-arg]
         "takes at most 1 argument by its place; got 2; .*`effort=`, .* by name"),
        (lambda: cp_estimate(DB, rank=3),  # type: ignore[call-arg]
         "`cp_estimate` has no argument `rank`"),
        (lambda: matrix_multiplication(2),  # type: ignore[call-arg]
         "`matrix_multiplication` needs `m` and `p`"),
        (lambda: LayerConfig(8), "`LayerConfig` needs `n_heads`"),  # type: ignore[call-arg]
        (lambda: DB.sample_subjects(1),  # type: ignore[call-arg]
         "`Database.sample_subjects` needs `seed`"),
        (lambda: DB.sample_subjects(1, 0, seed=0),  # type: ignore[call-arg,misc]
         "`seed` by its place and by name"),
        (lambda: Database("f.tsv"),  # type: ignore[call-arg]
         "`Database` needs `role_ids` and `tuples`"),
        (lambda: plot_accuracy_grid([1, 2]),  # type: ignore[arg-type]
         r"must be a DataFrame; got \[1, 2\]"),
        (lambda: from_coo([[0, 0, 0]], [1], (2, 2)), "`shape` must have a side for each column"),
        # two facts, of three candidates and of two
        (lambda: evaluator.margins(np.zeros((3, 2)), np.ones((3, 2), int)),
         r"these arguments together: `logits` is float64 \(3, 2\), `targets` is int64 \(3, 2\)"),
        (lambda: evaluator.auroc("quick", [1.0]), "`positive` of `auroc` must be numbers"),
        (lambda: capacity.sweep.load("x" * 5000), "file name too long"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "call",
)  # fmt: skip
def test_wrong_calls_are_answered_in_a_sentence(call: Any, said: str) -> None:
    with pytest.raises(CapacityError, match=said) as refusal:
        call()
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 400


def test_an_error_of_the_users_own_function_or_of_the_library_goes_on_as_it_is() -> None:
    def fail(*_what: Any) -> None:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        rank_interval(DB, progress=fail)

    def broken(n: int, name: str = "a") -> int:
        """Break for a right argument, which is the fault of the function."""
        raise ArithmeticError(name * n)

    answering = through_door(broken, __name__)
    with pytest.raises(ArithmeticError, match="aa"):
        answering(2)
    with pytest.raises(InvalidTypeError, match="`n` of `broken` must be an integer; got '2'"):
        answering("2", "")
    # what was wrong is told with what happened
    with pytest.raises(CapacityError, match=r"`name` is empty\. ArithmeticError") as refusal:
        answering(2, "")
    assert isinstance(refusal.value.__cause__, ArithmeticError)


def test_public_functions_are_the_same_from_every_room_and_are_pickled() -> None:
    for function in (capacity.rank_interval, capacity.load, capacity.tensor.from_coo):
        assert pickle.loads(pickle.dumps(function)) is function
    assert capacity.rank_interval is capacity.rank.rank_interval
    assert inspect.signature(capacity.rank_interval).parameters.keys() >= {"of", "effort"}
    assert (rank_interval.__doc__ or "").startswith("Bound the rank")


@pytest.mark.parametrize(
    ("value", "kind", "is_one"),
    [
        (3, "int", True), (True, "int", False), (np.int64(3), "int", True), (3, "float", True),
        ("3", "int", False), (None, "int | None", True), ("a", "Sequence[str]", False),
        (["a"], "Sequence[str]", True), (["a", 1], "Sequence[str]", False), ("x", "Path", False),
        ([1], "tuple[int, ...]", False), ((1, 2, 3), "tuple[int, int]", False),
        ({"a": 1}, "Mapping[str, int]", True), ({"a": 1}, "Iterable[int]", False),
        ("b", "Literal['a', 'b']", True), (1, "Literal[True]", False), (len, "Callable", True),
        (np.array(1), "Iterable[int]", False), ([[1], [2, 3]], "ArrayLike", False),
        ([[1, 2], [2, 3]], "ArrayLike", True), (["a"], "ArrayLike", False), (3, "ArrayLike", True),
        (np.zeros(2), "NDArray[np.int64]", False), (np.zeros(2), "NDArray[np.floating]", True),
        (3, "Unheard", True),
    ],
    ids=str,
)  # fmt: skip
def test_a_value_is_told_from_its_annotation(value: Any, kind: str, is_one: bool) -> None:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Literal

    from numpy.typing import ArrayLike, NDArray

    from capacity.door.annotations import fits

    names = {"Callable": Callable, "Iterable": Iterable, "Mapping": Mapping, "Sequence": Sequence,
             "Literal": Literal, "ArrayLike": ArrayLike, "NDArray": NDArray, "np": np,
             "Path": Path, "Unheard": Any}  # fmt: skip
    assert fits(value, eval(kind, names)) is is_one


def test_packages_that_are_called_and_classes_that_are_made_otherwise_say_so() -> None:
    with pytest.raises(InvalidTypeError, match=r"`sweep` needs `out`"):
        capacity.sweep("plan.toml")  # type: ignore[operator]
    with pytest.raises(InvalidTypeError, match=r"Make one by `Database\.from_triples` or"):
        Database("facts.tsv")  # type: ignore[call-arg]


def test_an_error_of_a_users_own_function_is_none_of_the_call() -> None:
    def edit(_z: object) -> object:
        raise IndexError("mine")

    layer = AttentionLayer(LayerConfig(4, 2), 5)
    with pytest.raises(IndexError, match="mine"):
        layer(torch.zeros((1, 2), dtype=torch.int64), edits={"z": edit})  # type: ignore[dict-item]


def test_a_warning_that_is_made_an_error_stays_a_warning() -> None:
    facts = [("a", "p", "x"), ("a", "p", "y")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(MultiValuedWarning):
            Database.from_triples(facts)
        with pytest.raises(MultiValuedWarning):
            as_database(facts)
