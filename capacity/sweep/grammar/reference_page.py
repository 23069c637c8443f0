"""The reference of a sweep's file, in Markdown, from the dataclasses that read it."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import MISSING, Field, fields
from typing import Any

from capacity.layer.compute import Compute
from capacity.layer.config import LayerConfig
from capacity.layer.recipe import Recipe
from capacity.sweep.grammar.plan_file import NO_KEYS
from capacity.sweep.grammar.sections import DatabaseFile, Databases, Runs, Subset, Synthetic
from capacity.sweep.grammar.values import is_required, keys_of

_HEAD = """# The file of a sweep

`capacity sweep FILE.toml --out DIR` trains what a TOML file asks for. A key without a default must
be there; all others may be left out, and so may whole sections but `[databases]` and `[layers]`.
Unknown keys are refused.

This page is written by `capacity sweep --reference`, from the dataclasses that read the file.

```toml
[databases]
synthetic = { count = 20, seed = 0, max_triples = 100, subjects = [2, 10] }
[[databases.files]]
path = "examples/countries.ttl"
subset = { subjects = 12, seed = 1, count = 5 }

[layers]
d_model    = [2, 4, 6]
n_heads    = [1, 2]
d_head_qk  = [1, 2]
d_head_vo  = [1, 2, 4]
layer_norm = [false, true]

[runs]
pairs = 100
seeds = [0, 1, 2]
taus  = [0.999]

[[recipe]]
epochs = 2000
[[recipe]]
learning_rate = 0.03
schedule = "cosine"

[compute]
dtype = "float32"
```
"""
# the heading of each section, its class, and what its docstring doesn't say of the file
_SECTIONS: tuple[tuple[str, type, str], ...] = (
    ("`[databases]`", Databases, ""),
    ("`synthetic` in `[databases]`", Synthetic, ""),
    ("`[[databases.files]]`", DatabaseFile, ""),
    ("`subset` in `[[databases.files]]`", Subset, ""),
    (
        "`[layers]`",
        LayerConfig,
        "Each key has a list of values, and every combination with d_head_qk, d_head_vo <= d_model "
        "is a layer. `n_positions` is 0 or at least 2, for a subject and a predicate.",
    ),
    ("`[runs]`", Runs, ""),
    (
        "`[recipe]`",
        Recipe,
        "`[[recipe]]`, which may stand several times, gives several recipes, all from the same "
        "initial weights.",
    ),
    (
        "`[compute]`",
        Compute,
        "What is asked doesn't depend on it; the last bits of a result do. The device is said on "
        "the command line.",
    ),
)


def reference() -> str:
    """Write the reference of a sweep's file as a page of Markdown.

    Examples
    --------
    >>> reference().splitlines()[0]
    '# The file of a sweep'
    """
    return "\n".join([_HEAD, *(_section(*each) for each in _SECTIONS)])


def _section(heading: str, kind: type, note: str) -> str:
    said = _parameters(kind)
    rows = [
        f"| `{each.name}` | {said[each.name][0]} | {_default(kind, each)} | {said[each.name][1]} |"
        for each in fields(kind)
        if each.name in keys_of(kind, NO_KEYS)
    ]
    summary = _plain((inspect.getdoc(kind) or "").split("\n\n")[0])
    about = f"{summary} {note}".strip()
    table = ["| key | value | default | meaning |", "|---|---|---|---|", *rows]
    return "\n".join([f"## {heading}", "", about, "", *table, ""])


def _default(kind: type, each: Field[Any]) -> str:
    if is_required(each):
        return "required"
    value = each.default if each.default_factory is MISSING else each.default_factory()
    if kind is LayerConfig:
        value = [value]
    return "" if value is None or value == () else f"`{json.dumps(value)}`"


def _parameters(kind: type) -> dict[str, tuple[str, str]]:
    """Types and descriptions in the numpydoc section Parameters of a class, by name."""
    found: dict[str, tuple[str, list[str]]] = {}
    names: list[str] = []
    _, _, text = (inspect.getdoc(kind) or "").partition("Parameters\n----------\n")
    for line in re.split(r"\n\n\w+\n-+\n", text)[0].splitlines():
        if not line.startswith(" "):
            listed, _, type_said = line.partition(" : ")
            names = listed.split(", ")
            found |= {name: (type_said, []) for name in names}
        else:
            for name in names:
                found[name][1].append(line.strip())
    return {name: (_plain(said), _plain(" ".join(lines))) for name, (said, lines) in found.items()}


def _plain(text: str) -> str:
    """Text of a docstring as it stands in a cell of a table."""
    return " ".join(text.replace("``", "`").split()).replace("|", "\\|")
