"""Recall of a real language model: the time of 246 capitals, on two idle cores.

    python benchmarks/capitals.py

asks SmolLM2-135M-Instruct for all capitals of examples/countries.ttl, and writes
benchmarks/results/capitals.json.
"""

from __future__ import annotations

import time
from typing import Any

import torch
from recall import PREDICATE, THREADS, asked
from record import write

from capacity import Database, load
from experiments.common.models import smollm2


def whole(model: tuple[Any, Any], capitals: Database, countries: Database) -> dict[str, Any]:
    """Every capital, by the search for the best answer."""
    cpu, wall = time.process_time(), time.perf_counter()
    found = asked(model, capitals, countries, "best")
    return {
        "what": "best answers of all subjects",
        "subjects": len(capitals.subjects),
        "candidates": len(capitals.objects),
        "continuations": found.n_continuations,
        "scored": found.n_scored,
        "known": len(found.known()),
        "CPU seconds": round(time.process_time() - cpu, 1),
        "seconds": round(time.perf_counter() - wall, 1),
        "threads": torch.get_num_threads(),
    }


def main() -> None:
    """Write the record."""
    torch.set_num_threads(THREADS)
    countries = load("examples/countries.ttl")
    write(
        "capitals",
        what="SmolLM2-135M-Instruct asked for all capitals: seconds on two cores",
        peer="none",
        rows=[whole(smollm2(), countries.select(predicates=PREDICATE), countries)],
        packages=["torch", "transformers"],
    )


if __name__ == "__main__":
    main()
