"""Bits a parameter and associations of other authors, on the axis of starts.

    python -m experiments.starts.neighbours --run     (eighteen minutes on two cores)
    python -m experiments.starts.neighbours --plot

`overload` and `associations` train each layer from one start, and one start mixes what a layer can
store with the luck of training. Fixed before the run, all by the best recipe and at tau = 0.95:

**Bits.** `LAYERS`: the two of `overload`, and two of one head. `KINDS` of databases without
structure: as many subjects as predicates and 16 objects, as in `overload`; and 4 predicates with 64
objects. `DATABASES` of each of `SIZES`, from far below what a layer holds to far above, each from
the same `STARTS` draws with W_Q and W_K trained, and frozen as drawn. After 2,000 epochs, and at
the sizes of `LONG` after 20,000 (with 64 objects for d_model below 8 alone, since a pilot had
larger layers hold these databases whole). Told are, for one start (the mean over starts) and for
the best of 8:

* the *most* bits a parameter: the largest mean over databases, of all sizes. Bits are counted after
  Allen-Zhu and Li (2404.05405), with Morris et al. (2505.24832) beside (`stored_bits`), over all
  parameters, embeddings included. "2 bits" (and 3.6, after Morris et al.) *holds here* if the whole
  interval of one of the layers is at or above that line, and else it is *not seen here*;
* the bits a parameter of the largest database that is *held* whole (by argmax too), after 2,000
  epochs;
* CP beside: of the same databases, all bits over the parameters of a CP decomposition,
  d (n_subjects + n_predicates + n_objects), at its argmax rank d: the least dimension found at
  which the largest score is the fact, with proof (`capacity.dimension`). A multiple of such factors
  holds at any tau.

The sizes come from a pilot with one or two other databases and 4 starts, whose most was 2.2 bits
after 20,000 epochs, with 64 objects, d_model 4 and W_Q and W_K frozen.

**Associations.** The task of Dana, Pydi and Chevaleyre (2411.10115) as in `associations`, with our
layers of d_head_qk = d_head_vo = d_h: `D`, `HEADS` and `D_H`, `TASKS` databases, `TRIES` starts,
W_Q and W_K trained or frozen, attention scaled by 1 / sqrt(d_h) as theirs is, or not, as the
paper's. d is at most 8, since larger ones take thirty times as long. The exponents of heads, d_h
and d are by least squares on the logarithm of the share of pairs above chance, where shares lie
between 1.2 times chance and `SATURATED`; standard errors are clustered by databases and layers.
"Their d_h squared is trainability" *holds here* if the best of 4 starts has an exponent of d_h
that is lower than that of one start by at least `LOWER`, with its whole interval (trained, scaled),
and else it is *not seen here*. Freezing takes the same luck out only where it doesn't lower the
share, which is told.

Added after the run: bits over the parameters that recall reads, counted as CP's are: those of the
heads, W_E's rows of subjects and predicates, and W_U's columns of objects. A layer has twice as
many for embeddings, since it has both for every token. Exponents of d_h alone are over databases.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, TypeAlias

import pandas as pd
import torch

from capacity import LayerConfig, Recipe, dimension
from capacity.database import Database, structured_database
from capacity.evaluator import evaluate, stored_bits
from capacity.layer import AttentionLayer, train_many
from capacity.progress import bar
from experiments.common.harness import BEST, Tables, main, rows_of
from experiments.size.associations import database_of as associations_of
from experiments.starts.neighbours_numbers import numbers
from experiments.starts.neighbours_plots import plot

LAYERS = {
    each.name: each
    for each in (
        LayerConfig(4, 3, 2, 2), LayerConfig(8, 4, 2, 2),
        LayerConfig(6, 1, 6, 3), LayerConfig(8, 1, 4, 4),
    )
}  # fmt: skip
# predicates, or None for as many as subjects, and objects
KINDS: dict[str, tuple[int | None, int]] = {"16 objects": (None, 16), "64 objects": (4, 64)}
# numbers of subjects
SIZES = {
    "16 objects": (8, 10, 12, 14, 17, 20, 24, 29),
    "64 objects": (34, 48, 68, 96, 136, 192, 272, 384),
}
LONG = {"16 objects": (17, 24), "64 objects": (272,)}
DATABASES, STARTS, TAU = 5, 8, 0.95
SHORT_EPOCHS, LONG_EPOCHS = 2000, 20_000
QUERY_KEY = ("W_Q", "W_K")
D, HEADS, D_H = (4, 8), (1, 4, 20), (1, 2, 4, 8)
TASKS, TRIES = 6, 4
# kind, number of subjects, database, layer, frozen, epochs, starts
BitsTask: TypeAlias = tuple[str, int, int, str, bool, int, int]


def run(smoke: bool) -> Tables:
    """A row for each start of each layer on each database, and one for each CP decomposition."""
    databases, starts = (2, 2) if smoke else (DATABASES, STARTS)
    sizes = {kind: of[:2] if smoke else of for kind, of in SIZES.items()}
    if smoke:
        bits = _tasks(sizes, list(LAYERS)[:2], databases, 60, starts)
    else:
        bits = [
            *_tasks(sizes, list(LAYERS), databases, SHORT_EPOCHS, starts),
            *(
                task
                for task in _tasks(LONG, list(LAYERS), databases, LONG_EPOCHS, starts)
                if task[0] == "16 objects" or LAYERS[task[3]].d_model < 8
            ),
        ]
    # to look for fewer dimensions than a formula gives takes seconds
    cp = [
        (kind, size, i, not smoke)
        for kind, of in sizes.items()
        for size, i in product(of, range(databases))
    ]
    every = product(
        D[: 1 if smoke else None], HEADS[: 2 if smoke else None], D_H[: 2 if smoke else None],
        (False, True), (False, True), range(2 if smoke else TASKS),
    )  # fmt: skip
    pairs_epochs, tries = (100, 2) if smoke else (SHORT_EPOCHS, TRIES)
    pairs = [(*setting, pairs_epochs, tries) for setting in every if setting[2] <= setting[0]]
    with bar() as tell:
        stored = rows_of("neighbours-bits", bits_of, bits, tell, in_process=smoke, cost=_cost_of)
        ranks = rows_of("neighbours-cp", cp_of, cp, tell, in_process=smoke)
        shares = rows_of("neighbours-pairs", shares_of, pairs, tell, in_process=smoke)
    return {
        "bits": _flat(stored),
        "cp": pd.DataFrame(ranks),
        "associations": _flat(shares),
    }


def _tasks(
    sizes: Mapping[str, Sequence[int]],
    layers: Sequence[str],
    databases: int,
    epochs: int,
    starts: int,
) -> list[BitsTask]:
    return [
        (kind, size, i, name, frozen, epochs, starts)
        for kind, of in sizes.items()
        for size in of
        for i, name, frozen in product(range(databases), layers, (False, True))
    ]  # fmt: skip


def _cost_of(task: BitsTask) -> float:
    """Facts times epochs."""
    kind, size, _, _, _, epochs, _ = task
    return size * (KINDS[kind][0] or size) * epochs


def _flat(found: Iterable[dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame([row for each in found for row in each["rows"]])


def database_of(kind: str, size: int, i: int) -> Database:
    """A database without structure, none of those of `overload`."""
    predicates, objects = KINDS[kind]
    return structured_database(
        5_430_000 + 10_000 * objects + 10 * size + i, "same", 0.0,
        subjects=size, predicates=predicates or size, objects=objects,
    )  # fmt: skip


def bits_of(task: BitsTask) -> dict[str, Any]:
    """Count the bits that a layer stores of one database, from each start."""
    kind, size, i, name, frozen, epochs, starts = task
    db = database_of(kind, size, i)
    layers = _trained(LAYERS[name], db, frozen, epochs, starts, i)
    rows: list[dict[str, Any]] = []
    for start, layer in enumerate(layers):
        stored, accuracy = stored_bits(layer, db), evaluate(layer, db)
        rows.append({
            "kind": kind, "size": size, "database": i, "database_id": f"{kind}-{size}-{i}",
            "layer_id": name, "is_frozen": frozen, "trained_for": epochs, "start": start,
            "n_triples": db.n_triples, "n_all_parameters": stored.n_all_parameters,
            "bits_content": stored.content, "bits_averaged": stored.averaged,
            "bits_clipped": stored.clipped, "accuracy_argmax": accuracy.argmax,
            "accuracy_p95": accuracy.at(TAU),
        })  # fmt: skip
    return {"rows": rows}


def _trained(
    config: LayerConfig, db: Database, frozen: bool, epochs: int, starts: int, i: int
) -> list[AttentionLayer]:
    """Layers from several starts, which draw the same weights frozen or not."""
    torch.set_num_threads(1)
    seeds = [100 * i + start for start in range(starts)]
    layers = [AttentionLayer(config, db.n_tokens, seed=seed) for seed in seeds]
    recipe = Recipe(**{**BEST, "epochs": epochs, "frozen": QUERY_KEY if frozen else ()})
    train_many([(layer, db) for layer in layers], recipe, seeds=seeds)
    return layers


def cp_of(task: tuple[str, int, int, bool]) -> dict[str, Any]:
    """The argmax rank of CP for one database."""
    kind, size, i, by_training = task
    torch.set_num_threads(1)
    db = database_of(kind, size, i)
    found = dimension(db, "CP", shared=False, witness=by_training)
    if found.sufficient is None:
        raise RuntimeError(f"{task}: no dimension was found")
    shape = (len(db.subject_ids), len(db.predicate_ids), len(db.object_ids))
    return {
        "kind": kind, "size": size, "database": i, "n_triples": db.n_triples,
        "necessary": found.necessary, "argmax_rank": found.sufficient,
        "n_parameters": found.sufficient * sum(shape),
    }  # fmt: skip


def shares_of(task: tuple[int, int, int, bool, bool, int, int, int]) -> dict[str, Any]:
    """The share of 2,500 pairs that a layer predicts, from each start."""
    d, heads, d_h, frozen, scaled, i, epochs, starts = task
    db = associations_of(1000 + i)
    config = LayerConfig(d, heads, d_h, d_h, scale=scaled)
    layers = _trained(config, db, frozen, epochs, starts, i)
    return {
        "rows": [
            {
                "d": d, "heads": heads, "d_h": d_h, "layer_id": f"{d}-{heads}-{d_h}",
                "database_id": f"{i}", "is_frozen": frozen, "scaled": scaled, "start": start,
                "share": evaluate(layer, db).argmax,
            }
            for start, layer in enumerate(layers)
        ]
    }  # fmt: skip


if __name__ == "__main__":
    main("neighbours", run, numbers, plot)
