"""The public interface: names, types, answers to wrong calls, and the display of results."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass, replace
from types import ModuleType
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import rdflib
import torch

import capacity
from capacity import AttentionLayer, Database, LayerConfig, Recipe
from capacity import errors as errors_of_library
from capacity.checks import shown
from capacity.display import LARGEST, brief
from capacity.errors import CapacityError
from capacity.rank import CertificatePair
from tests.oracles import ROOT, figure_1

FIGURE_1 = ROOT / "examples" / "figure-1.ttl"
ROOMS = ("tensor", "database", "rank", "stores", "layer", "evaluator", "embedding", "plots",
         "recall", "report", "sweep", "transformer", "testing")  # fmt: skip


def faces() -> list[ModuleType]:
    return [capacity, *(importlib.import_module(f"capacity.{room}") for room in ROOMS)]


def public(face: ModuleType) -> dict[str, Any]:
    names = getattr(face, "__all__", None) or [n for n in vars(face) if not n.startswith("_")]
    return {name: getattr(face, name) for name in names}


# names


def test_the_top_level_has_a_dozen_names_and_their_rooms() -> None:
    names = {
        name: value
        for name, value in public(capacity).items()
        if not isinstance(value, ModuleType) and name != "__version__"
    }
    assert set(names) == {
        "Database", "load", "database_bounds", "rank_interval", "effective_rank_interval",
        "cp_estimate", "dimension", "describe", "verify", "LayerConfig", "AttentionLayer", "Recipe",
        "train", "evaluate", "Progress", "Seed",
    }  # fmt: skip
    page = capacity.__doc__ or ""
    assert all(f"`{name}`" in page for name in names)


def test_help_is_a_page_and_loads_no_torch() -> None:
    # names that were used before don't fill the page
    code = (
        "import sys, capacity; capacity.rank_interval, capacity.Database; help(capacity);"
        "print(sorted({'torch'} & set(sys.modules)))"
    )
    page = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert page.stdout.endswith("[]\n")
    assert len(page.stdout.splitlines()) < 80


def test_names_are_listed_before_they_are_loaded() -> None:
    assert {"AttentionLayer", "train", "rank"} <= set(dir(capacity))


@pytest.mark.parametrize(
    ("face", "wrong", "right"),
    [("capacity", "rank_intervall", "rank_interval"), ("capacity", "AttentionLyer",
      "AttentionLayer"), ("capacity.rank", "paper_bond", "paper_bound")],
)  # fmt: skip
def test_a_misspelt_name_gets_the_nearest(face: str, wrong: str, right: str) -> None:
    with pytest.raises(AttributeError, match=f"Did you mean `{right}`"):
        getattr(importlib.import_module(face), wrong)


def signatures() -> Iterator[tuple[str, str]]:
    """Public functions, methods and fields, each with one of its annotations."""
    for face in faces():
        for name, value in public(face).items():
            if inspect.isfunction(value):
                yield from ((name, str(a)) for a in value.__annotations__.values())
            elif inspect.isclass(value) and value.__module__.startswith("capacity"):
                yield from ((name, str(a)) for a in vars(value).get("__annotations__", {}).values())
                for key, member in vars(value).items():
                    function = getattr(member, "__func__", getattr(member, "fget", member))
                    if key.startswith("_") and key != "__init__":
                        continue
                    for annotation in getattr(function, "__annotations__", {}).values():
                        yield f"{name}.{key}", str(annotation)


def defined() -> set[str]:
    """Classes and aliases of types that modules of the library define."""
    names: set[str] = set()
    for path in (ROOT / "capacity").rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.AnnAssign) and "TypeAlias" in ast.unparse(node.annotation):
                names.add(ast.unparse(node.target))
            elif isinstance(node, ast.Assign) and re.match("[A-Z][a-z]", ast.unparse(node)):
                names.add(ast.unparse(node.targets[0]))
    return names


@pytest.mark.slow
def test_types_of_public_signatures_are_public() -> None:
    exported = {name for face in (*faces(), errors_of_library) for name in public(face)}
    mine = defined()
    found = list(signatures())
    assert len(found) > 500
    hidden = {
        (word, where)
        for where, annotation in found
        for word in re.findall(r"(?<!\.)\b[A-Z]\w+", annotation)
        if word in mine and word not in exported
    }
    assert not hidden


# wrong calls, of which a checker of types would tell

lib: Any = capacity


# what holds no facts, and no integers
WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "a path": (lambda: "films.ttl", "no such file"),
    "an array": (lambda: np.full((2, 2, 2), 0.5), "shape|cp_estimate"),
    "a tensor": (lambda: torch.full((2, 2, 2), 0.5), "shape|cp_estimate"),
    "a table": (lambda: pd.DataFrame({"a": [1]}), "DataFrame must have the columns"),
    "an rdflib graph": (rdflib.Graph, "no triples were found"),
    "a graph": (nx.MultiDiGraph, "no edges"),
    "rows": (lambda: [("a", "b")], "hold a subject, a predicate and an object"),
    "bytes": (lambda: b"<a> <p> <x> .", r"capacity\.database\.parse_rdf"),
    "a model": (
        lambda: torch.nn.Linear(1, 1),
        "swap the layer and the database|which holds no facts",
    ),
    "a layer": (
        lambda: AttentionLayer(LayerConfig(1, 1, 1, 1), 2),
        r"swap the layer and the database|which holds no facts|cp_estimate\(tensor\)",
    ),
    "nothing": (lambda: None, "got None"),
}
CALLS: dict[str, Callable[[Any], object]] = {
    "rank_interval": capacity.rank_interval,
    "effective_rank_interval": capacity.effective_rank_interval,
    "database_bounds": capacity.database_bounds,
    "paper_bound": capacity.rank.paper_bound,
    "unfolding_rank": lambda db: capacity.rank.unfolding_rank(db, 0),
    "slice_rank_sum": lambda db: capacity.rank.slice_rank_sum(db, 0),
    "verify": lambda db: capacity.verify(capacity.rank_interval(figure_1()).certificates.lower, db),
    "evaluate": lambda db: capacity.evaluate(AttentionLayer(LayerConfig(1, 1, 1, 1), 2), db),
    "to_pandas": capacity.database.to_pandas,
    "to_networkx": capacity.database.to_networkx,
    "to_rdflib": capacity.database.to_rdflib,
    "write_tsv": lambda db: capacity.database.write_tsv(db, "none.tsv"),
    "with_unknown": lambda db: capacity.evaluator.with_unknown(db, 0.1),
    "nonsense_pairs": capacity.evaluator.nonsense_pairs,
    "store_in_query_key": capacity.layer.store_in_query_key,
    "store_in_value_output": capacity.layer.store_in_value_output,
    "train": lambda db: capacity.train(AttentionLayer(LayerConfig(1, 1, 1, 1), 2), db),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("what", WRONG)
def test_what_holds_no_facts_is_refused_with_what_to_do(what: str, call: str) -> None:
    make, advice = WRONG[what]
    with pytest.raises(CapacityError, match=advice):
        CALLS[call](make())


def test_the_advised_calls_exist() -> None:
    for _, advice in WRONG.values():
        for name in re.findall(r"capacity((?:\\\.\w+)+)", advice):
            value: Any = capacity
            for part in name.replace("\\", "").strip(".").split("."):
                value = getattr(value, part)
            assert callable(value)


@pytest.mark.parametrize(
    ("call", "said"),
    [(lambda db, layer: lib.train(db, layer), "layer comes first"),
     (lambda db, layer: lib.evaluate(db, layer), "layer comes first"),
     (lambda db, layer: lib.train(layer, db, {"epochs": 3}), r"Pass Recipe\(\.\.\.\)"),
     (lambda db, layer: lib.AttentionLayer(layer.config, db), r"db\.n_tokens"),
     (lambda db, layer: lib.AttentionLayer(db, 3), "must be a LayerConfig"),
     (lambda db, layer: lib.AttentionLayer(layer.config, 9, device="gpu"), "cpu or cuda"),
     (lambda db, layer: lib.verify(db, db), "must be a Certificate"),
     (lambda db, layer: lib.Database.from_triples("a.ttl"), r"capacity\.load\(path\)"),
     (lambda db, layer: lib.rank_interval(db, seed=None), "numpy.random.Generator"),
     (lambda db, layer: lib.AttentionLayer(layer.config, 9, seed=1.5), "numpy.random.Generator"),
     (lambda db, layer: lib.database.random_database(None), "numpy.random.Generator"),
     (lambda db, layer: lib.sweep.run_sweep({"seeds": 1}, "out"), r"Plan or the path"),
     (lambda db, layer: lib.evaluate(layer, db, taus=["0.9"]), "strictly between"),
     (lambda db, layer: lib.evaluator.decoded_facts(layer, db, "argmx"), "mean `argmax`"),
     (lambda db, layer: lib.evaluator.memorises(layer, db, "argmx"), "mean `argmax`"),
     (lambda db, layer: lib.evaluate(layer, db).at(0.9), "was scored at: argmax, argmax_paper"),
     (lambda db, layer: lib.evaluator.layer_terms(layer, [[0, 1]]), r"db\.token_triples"),
     (lambda db, layer: lib.layer.train_many([layer]), "pairs of a layer and its database"),
     (lambda db, layer: lib.sweep.make_plan("demo.toml"), "read_plan"),
     (lambda db, layer: lib.rank_interval(layer), "estimate the rank"),
     (lambda db, layer: lib.verify([], db), "must be a certificate; got none"),
     (lambda db, layer: db("", "born_in"), "No subject is called ''"),
     (lambda db, layer: lib.Database.from_triples(pd.DataFrame()), "from_pandas"),
     (lambda db, layer: lib.Recipe(lr=0.1), "Did you mean `learning_rate`"),
     (lambda db, layer: lib.LayerConfig(1, heads=1, d_head_qk=1, d_head_vo=1), "mean `n_heads`"),
     (lambda db, layer: lib.layer.Compute(engin="auto"), "Did you mean `engine`"),
     (lambda db, layer: lib.rank_interval(db, effort="quik"), "Did you mean `quick`"),
     (lambda db, layer: lib.rank_interval(db, methods=["least sqares"]), "mean `least squares`"),
     (lambda db, layer: lib.load(FIGURE_1, multi="majorty"), "Did you mean `majority`"),
     (lambda db, layer: db.with_policy("frist"), "Did you mean `first`")],
)  # fmt: skip
def test_a_wrong_call_is_told_the_right_one(call: Callable[..., object], said: str) -> None:
    db = figure_1()
    layer = AttentionLayer(LayerConfig(2, 1, 1, 1), db.n_tokens)
    with pytest.raises(CapacityError, match=said):
        call(db, layer)


def test_a_gpu_that_is_not_there_is_refused_in_words() -> None:
    if torch.cuda.is_available():
        assert AttentionLayer(LayerConfig(1, 1, 1, 1), 2, device="cuda").W_E.is_cuda
    else:
        with pytest.raises(CapacityError, match="no usable GPU"):
            AttentionLayer(LayerConfig(1, 1, 1, 1), 2, device="cuda")


def test_a_gpu_is_not_taken_for_a_cpu() -> None:
    with pytest.raises(CapacityError, match="A GPU is cuda"):
        AttentionLayer(LayerConfig(1, 1, 1, 1), 2, device="gpu")
    with pytest.raises(CapacityError) as error:
        capacity.layer.Compute(device="gpu")  # type: ignore[arg-type]
    assert "Did you mean" not in str(error.value)


def test_a_name_of_a_room_is_found_at_the_top() -> None:
    with pytest.raises(AttributeError, match=r"It is in capacity\.database\."):
        _ = lib.from_pandas


def test_sizes_may_be_integers_of_numpy() -> None:
    sizes = LayerConfig(*np.array([4, 1, 2, 2]))
    assert sizes == LayerConfig(4, 1, 2, 2)
    assert {type(sizes.d_model), type(lib.Recipe(epochs=np.int32(3)).epochs)} == {int}
    with pytest.raises(CapacityError, match="must be an integer"):
        LayerConfig(4.0, 1, 2, 2)  # type: ignore[arg-type]


# intervals


def test_verify_takes_several_certificates() -> None:
    db = figure_1()
    both = [capacity.rank_interval(db), capacity.effective_rank_interval(db)]
    ends = [end for interval in both for end in interval.certificates]
    assert capacity.verify(ends, db)
    wrong = replace(ends[3], value=ends[3].value - 1)
    verdict = capacity.verify([*ends[:3], wrong], db)
    assert not verdict
    assert (verdict.reason or "").startswith("upper bound: ")


def test_verify_takes_both_ends_at_once() -> None:
    db = figure_1()
    interval = capacity.rank_interval(db)
    assert capacity.verify(interval, db).proved
    lower, upper = interval.certificates
    lowered = CertificatePair(lower, replace(upper, value=upper.value - 1))
    too_low = replace(interval, certificates=lowered)
    verdict = capacity.verify(too_low, db)
    assert not verdict.proved
    assert (verdict.reason or "").startswith("upper bound: ")
    turned = replace(interval, certificates=CertificatePair(upper, lower))
    with pytest.raises(CapacityError, match="of a lower and of an upper bound"):
        capacity.verify(turned, db)


# how results are shown


def results() -> Iterator[object]:
    """One object of each public dataclass that can be had from a database and a layer."""
    from capacity import evaluator, rank, sweep, transformer
    from capacity.layer.model.tensor import layer_tensor

    # 60 facts under one predicate: arrays that numpy would write in full
    db = Database.from_triples([(f"s{i}", "p", f"o{i % 40}") for i in range(60)])
    bounds, interval = capacity.database_bounds(db), capacity.rank_interval(db)
    yield from (db, db.tokens[0], bounds, bounds.minors[0], interval)
    for end in interval.certificates:
        yield from (end, *end.arguments)
    yield capacity.verify(interval, db)
    yield from (*rank.KINDS.values(), *rank.METHODS)
    yield rank.concise_core(np.ones((40, 40, 40), np.int64))
    yield capacity.cp_estimate(np.ones((3, 3, 3)))
    config = LayerConfig(8, 2, 2, 2)
    layer = AttentionLayer(config, db.n_tokens)
    yield from (config, layer, Recipe(), capacity.layer.Compute())
    yield capacity.train(layer, db, Recipe(epochs=1))
    yield layer_tensor(layer, db)
    yield capacity.evaluate(layer, db)
    yield evaluator.layer_terms(layer, db.token_triples[:, :2])
    captured = layer.capture(torch.arange(12)[None])
    yield from (captured, captured.layers[0], *captured.steps)
    effective = transformer.effective_attention(captured)
    yield from (effective, effective.layers[0], transformer.decompose(captured))
    plan = sweep.read_plan(ROOT / "experiments" / "configs" / "demo.toml")
    yield from (plan, plan.runs[0])
    yield capacity.load(FIGURE_1).source


def test_results_are_shown_in_a_line_and_as_tables() -> None:
    shown = list(results())
    kinds = {type(one) for one in shown}
    assert len(kinds) >= 30
    for one in shown:
        assert len(repr(one)) <= LARGEST, repr(one)
        assert "\n" not in repr(one)
    tables = [one for one in shown if hasattr(one, "_repr_html_")]
    assert {"Database", "Bounds", "RankInterval", "Training", "Accuracy", "LayerTensor",
            "ActivationCache"} <= {type(one).__name__ for one in tables}  # fmt: skip
    for one in tables:
        page = one._repr_html_()  # type: ignore[attr-defined]
        assert page.startswith("<table>")
        assert page.endswith("</table>")
        assert len(page) < 4000


def test_what_python_refuses_to_write_is_shown_by_its_type() -> None:
    for value in (10**5000, [10**5000]):
        assert 0 < len(brief(value)) <= 60
        assert len(shown(value)) <= 60
    assert shown("x" * 100).endswith("...")


def test_tables_show_names_of_files_and_tokens_as_text() -> None:
    db = Database.from_triples([("<script>", "p", "x")])
    assert "<script>" not in db._repr_html_()
    assert "&lt;script&gt;" in db._repr_html_()


def test_every_public_dataclass_is_shown_briefly() -> None:
    """Those that hold arrays, sequences or other dataclasses have a short form of their own."""
    long = re.compile(r"NDArray|Indices|Tensor|tuple\[[^]]*\.\.\.|Callable|Mapping|Database\b")
    for face in faces():
        for name, value in public(face).items():
            if inspect.isclass(value) and is_dataclass(value):
                fields = " ".join(str(a) for a in value.__annotations__.values())
                if long.search(fields):
                    # what dataclasses write themselves is wrapped against recursion
                    assert not hasattr(value.__repr__, "__wrapped__"), (face, name)
