"""What every command prints with --json is what its JSON schema says."""

from __future__ import annotations

import copy
import json
import shlex
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import capacity
from capacity.cli import COMMANDS
from capacity.layer import DecoderConfig, LayerConfig
from capacity.sweep import runs_schema
from tests.commands import run

jsonschema = pytest.importorskip("jsonschema")
SCHEMAS = Path(capacity.__file__).parent / "cli" / "schemas"
PARTS = "parts"
FIGURE_1 = "examples/figure-1.ttl"
# of every command the lines whose output is held against its schema
LINES: dict[str, list[str]] = {
    "rank": [
        FIGURE_1,
        f"{FIGURE_1} --effective --estimate",
        f"{FIGURE_1} --predicate born_in",
        f"{FIGURE_1} --fold lists,statements",
        "several.nt",
        "several.nt --multi first",
        "several.nt --out-of-core",
        "four.tsv --arity 4",
        "tensor.npy --effective",
    ],
    "verify": [
        f"rank.json {FIGURE_1}",
        f"dimension.json {FIGURE_1}",
        f"refuted.json {FIGURE_1}",
        "tensor.json tensor.npy",
    ],
    "describe": [FIGURE_1, f"{FIGURE_1} --exclude currency", "several.nt",
                 "several.nt --out-of-core"],
    "dimension": [f"{FIGURE_1} --tau 0.9", "several.nt --task both-sides",
                  f"{FIGURE_1} --task signs"],
    "train": [f"{FIGURE_1} --epochs 2", f"{FIGURE_1} --epochs 2 --exclude currency",
              f"{FIGURE_1} --epochs 2 --learning-rate 1e30",
              f"{FIGURE_1} --epochs 2 --mlp 8 --norm rms --n-layers 2 --starts 2"],
    "sweep": ["plan.toml --dry-run", "plan.toml --out demo"],
    "grid": ["demo", "demo --tau argmax"],
    "attention": ['model --text the', 'model --text "the court said" --mode simplex'],
    "recall": [
        f"language-model {FIGURE_1} --templates templates.toml",
        f"language-model {FIGURE_1} --templates templates.toml --answers best --candidates all",
        f"language-model {FIGURE_1} --predicate lives_in",
    ],
    "report": [f"{FIGURE_1} --out page.html", "demo --out page.html"],
    "doctor": ["--device auto", "--device cuda"],
}  # fmt: skip


def schema(name: str) -> dict[str, Any]:
    return json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))


def whole(name: str) -> dict[str, Any]:
    """A schema with its shared parts within it, so that nothing need be looked up."""
    one = schema(name)
    parts = schema(PARTS)["$defs"]
    text = json.dumps({**one, "$defs": parts})
    return json.loads(text.replace(f"{PARTS}.json#/", "#/"))


def valid(name: str, data: Any) -> bool:
    # the drafts agree on every keyword of these schemas
    newest = getattr(jsonschema, "Draft202012Validator", jsonschema.Draft7Validator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return newest(whole(name)).is_valid(data)


@pytest.fixture
def printed(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str, str], Any]:
    monkeypatch.chdir(workplace)
    (workplace / "several.nt").write_text("<x:a> <x:p> <x:b> .\n<x:a> <x:p> <x:c> .\n")
    (workplace / "four.tsv").write_text("a\tp\tx\t1\na\tp\ty\t2\n")
    np.save(workplace / "tensor.npy", np.array([[[0, 1], [1, 0]], [[1, 0], [0, 0]]]))

    lower, upper = json.loads((workplace / "rank.json").read_text())
    (workplace / "refuted.json").write_text(json.dumps([{**lower, "value": 6}, upper]))

    def of(name: str, line: str) -> Any:
        if "tensor.json" in line:
            run(capsys, "rank", "tensor.npy", "--certificate", "tensor.json")
        code, out, _ = run(capsys, name, *shlex.split(line), "--json")
        assert code in ((0, 1) if name == "verify" else (0,))
        return json.loads(out)

    return of


def test_every_command_has_a_schema_of_draft_2020_12() -> None:
    assert {path.stem for path in SCHEMAS.glob("*.json")} == {*COMMANDS, PARTS}
    for name in (*COMMANDS, PARTS):
        assert schema(name)["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert set(LINES) == set(COMMANDS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "line"), [(name, line) for name, lines in LINES.items() for line in lines]
)
def test_output_is_what_the_schema_says(
    name: str, line: str, printed: Callable[[str, str], Any]
) -> None:
    assert valid(name, printed(name, line))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rank", "describe", "dimension", "doctor", "attention", "recall",
                                  "report"])  # fmt: skip
def test_a_missing_key_and_another_type_are_refused(
    name: str, printed: Callable[[str, str], Any]
) -> None:
    data = printed(name, LINES[name][0])
    for key in data:
        without = {other: value for other, value in data.items() if other != key}
        assert not valid(name, without) or key == "margins", key
        assert not valid(name, {**data, key: {"a": []}}), key
    assert not valid(name, {**data, "a key that nobody has": 0})


def numbers(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of the numbers in a piece of JSON."""
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from numbers(value, (*path, key))
    elif isinstance(data, int | float) and not isinstance(data, bool):
        yield path


@pytest.mark.parametrize("name", ["rank", "verify", "grid", "train"])
def test_no_number_may_be_a_text(name: str, printed: Callable[[str, str], Any]) -> None:
    data = printed(name, LINES[name][0])
    paths = list(numbers(data))
    assert paths
    for path in paths:
        changed = copy.deepcopy(data)
        at = changed
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = "5"
        assert not valid(name, changed), path


@pytest.mark.parametrize(("name", "layers"), [("run", LayerConfig), ("decoder_run", DecoderConfig)])
def test_the_schema_of_runs_has_the_columns_of_the_table(name: str, layers: Any) -> None:
    columns, names = schema(PARTS)["$defs"][name], runs_schema(layers=layers).names
    assert [*columns["properties"]] == [*names, "selection"]
    assert columns["required"] == names
