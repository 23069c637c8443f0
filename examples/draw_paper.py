"""Draw Figure 1 and Example 3.3 of L. Z. Wong, Paying Attention to Facts (2025, arXiv 2502.05076).

Run ``python examples/draw_paper.py`` in the root of the repository; it needs the extras layers and
plots. It writes ``figure-1.png`` and ``example-3-3.png`` beside itself.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import torch

from capacity.database import Database, load
from capacity.database.terms.term import local_name
from capacity.evaluator import circuit_tables
from capacity.layer import AttentionLayer, LayerConfig, layer_tensor
from capacity.plots import plot_database, plot_matrices

HERE = Path(__file__).parent


def figure_1() -> Database:
    """The facts of Figure 1, under their local names."""
    db = load(HERE / "figure-1.ttl")
    facts = [(db.subjects[k], db.predicates[q], db.objects[v]) for k, q, v in db.triples.tolist()]
    return Database.from_triples([tuple(map(local_name, fact)) for fact in facts])


def example_3_3(db: Database) -> AttentionLayer:
    """A layer of one head with the circuits of Example 3.3, for born_in and lives_in.

    Its embeddings are (u, 0, 0, 1) with u the row of W_VO; the head copies u to the third and the
    fourth coordinates, which W_U reads, and scores every token 1 by the last. So W_EU is 0.
    """
    rows = {
        "Astrid": (0.0, 0.0), "Bernard": (0.0, 4.0), "Colin": (4.0, 0.0),
        "born_in": (0.0, 2.0), "lives_in": (2.0, 0.0),
    }  # fmt: skip
    names = [db.name(token) for token in db.tokens]
    W_E = torch.zeros(len(names), 5)
    for name, row in rows.items():
        W_E[names.index(name)] = torch.tensor([*row, 0, 0, 1])
    W_U = torch.zeros(5, len(names))
    W_U[2, names.index("Malaysia")] = W_U[3, names.index("Singapore")] = 1
    eye = torch.eye(5)
    weights = {
        "W_E": W_E, "W_U": W_U, "W_Q": eye[None, :, 4:].repeat(1, 1, 2) / 2,
        "W_K": eye[None, 4:].repeat(1, 2, 1), "W_V": eye[None, :, :2], "W_O": eye[None, 2:4],
    }  # fmt: skip
    return AttentionLayer.of_weights(LayerConfig(5, 1, 2, 2), weights)


def matrices(layer: AttentionLayer, db: Database) -> dict[str, pd.DataFrame]:
    """The matrices that Example 3.3 prints, in its order."""
    tables = circuit_tables(layer, db)
    found = {"W_QK": tables["W_QK 0"], "W_VO": tables["W_VO 0"]}
    T = layer_tensor(layer, db)
    keys = [db.tokens[i] for i in T.keys.tolist()]
    tokens, subjects, predicates, objects = (
        [db.name(term) for term in terms]
        for terms in (keys, db.subjects, db.predicates, db.objects)
    )
    A, L = T.A.detach().numpy(), T.L.detach().numpy()
    for q, name in enumerate(predicates):
        found[f"A[:, {name}, :]"] = pd.DataFrame(A[0, :, q], subjects, tokens)
    for q, name in enumerate(predicates):
        found[f"(A V)[:, {name}, :]"] = pd.DataFrame(L[:, q], subjects, objects)
    return found


def main() -> None:
    """Write both figures."""
    db = figure_1()
    plot_database(db, title="Figure 1: two tables, and their triples", path=HERE / "figure-1.png")
    part = db.select(predicates=["born_in", "lives_in"])
    title = "Example 3.3: one head, with W_VO of rank 2, tells both places of each"
    plot_matrices(
        matrices(example_3_3(part), part),
        title=title,
        of="score, share of attention (A), or logit",
        across=2,
        path=HERE / "example-3-3.png",
    )


if __name__ == "__main__":
    main()
