"""Short forms of a database, for a terminal and for a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.database.arity import key_names, role_names
from capacity.display import table

if TYPE_CHECKING:
    from capacity.database.facts import Database


def in_a_line(db: Database) -> str:
    """Number of facts, shape, number of tokens, and whether the database is functional."""
    if db.arity == 3:
        k, q, v = db.shape
        facts = f"{db.n_facts} triples: {k} subjects x {q} predicates x {v} objects"
    else:
        sides = " x ".join(map(str, db.shape))
        facts = f"{db.n_facts} facts of arity {db.arity}: {sides:.100}"
    pairs = key_names(db.arity)[1]
    several = f"{db.n_multi_valued_pairs} of {db.n_pairs} {pairs} multi-valued"
    functional = "functional" if db.is_functional else several
    return f"Database({facts}, {db.n_tokens} tokens; {functional})"


def as_table(db: Database) -> str:
    """Sizes and the first facts, as a table in HTML."""
    is_triples = db.arity == 3
    sizes = zip(role_names(db.arity), db.shape, strict=True)
    rows = [("triples" if is_triples else "facts", db.n_facts),
            *((f"{role}s" if is_triples else role, n) for role, n in sizes),
            ("tokens", db.n_tokens),
            (f"multi-valued {key_names(db.arity)[1]}", db.n_multi_valued_pairs),
            *(("such as", " ".join(db.name(db.tokens[i]) for i in fact))
              for fact in db.token_tuples[:3].tolist())]  # fmt: skip
    return table("Database", rows)
