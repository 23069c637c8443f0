"""The law of layers as the library holds it, from the conclusions of `experiments.size.layers`.

    python -m experiments.size.held_sizes

It writes capacity/evaluator/laws/held_sizes.json, which `capacity.evaluator.held_size` reads.
"""

from __future__ import annotations

import json
from typing import Any

from experiments.common.harness import ROOT, results_of
from experiments.size.layers_numbers import SIZES

FILE = ROOT / "capacity" / "evaluator" / "laws" / "held_sizes.json"
KEPT = ("intercept", "weights", "steepness", "errors_in_nats", "ranges")


def text() -> str:
    """Coefficients, errors and ranges of the law, by recipe."""
    found = json.loads((results_of("law_of_layers") / "law_of_layers.json").read_text())
    laws: dict[str, Any] = {
        kind: {"columns": list(SIZES), **{key: of["law"][key] for key in KEPT}}
        for kind, of in found.items()
        if kind != "seconds_of_run"
    }
    return json.dumps(laws, indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
    print(FILE.relative_to(ROOT))
