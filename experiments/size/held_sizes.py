"""The laws of layers as the library holds them: of one start, and of reach.

    python -m experiments.size.held_sizes

It writes capacity/evaluator/laws/held_sizes.json, which `capacity.evaluator.held_size` reads,
from the conclusions of `experiments.size.layers` and `experiments.starts.half_sizes`.
"""

from __future__ import annotations

import json
from typing import Any

from experiments.common.harness import COSTS, ROOT, results_of
from experiments.size.layers_numbers import SIZES

FILE = ROOT / "capacity" / "evaluator" / "laws" / "held_sizes.json"
KEPT = ("columns", "intercept", "weights", "steepness", "errors_in_nats", "ranges")


def text() -> str:
    """Coefficients, errors and ranges of the laws, by what they foretell and recipe."""
    one, reach = (
        json.loads((results_of(name) / f"{name}.json").read_text())
        for name in ("law_of_layers", "half_sizes")
    )
    laws: dict[str, Any] = {
        "reliability": {
            kind: {"columns": list(SIZES), **conclusions["law"]}
            for kind, conclusions in one.items()
            if kind not in COSTS
        },
        "reach": {"best": reach["law"]},
    }
    kept = {
        by: {kind: {key: law[key] for key in KEPT} for kind, law in of.items()}
        for by, of in laws.items()
    }
    return json.dumps(kept, indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
    print(FILE.relative_to(ROOT))
