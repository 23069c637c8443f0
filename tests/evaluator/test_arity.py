"""What needs triples refuses facts of another arity at its door, and says so."""

from collections.abc import Callable
from typing import Any

import pytest

from capacity.database import Database, to_networkx, to_rdflib
from capacity.errors import InvalidArgumentError
from capacity.evaluator import (
    attention_of_pairs,
    decoded_facts,
    nonsense_answers,
    nonsense_pairs,
    query_key_freedom,
    term_accuracy,
    with_unknown,
)
from capacity.layer import (
    AttentionLayer,
    LayerConfig,
    Recipe,
    store_in_query_key,
    store_in_value_output,
)
from capacity.sweep import Run

CONFIG = LayerConfig(2, 1, 1, 1)
FACTS = {
    "arity 2": Database.from_tuples([("a", "x"), ("b", "y")]),
    "arity 4": Database.from_tuples([("a", "p", "r", "x"), ("b", "p", "r", "y")]),
}


def layer_of(db: Database) -> AttentionLayer:
    return AttentionLayer(CONFIG, db.n_tokens)


DOORS: dict[str, Callable[[Database], Any]] = {
    "to_networkx": to_networkx,
    "to_rdflib": lambda db: to_rdflib(db, base="http://x/"),
    "store_in_query_key": store_in_query_key,
    "store_in_value_output": store_in_value_output,
    "decoded_facts": lambda db: decoded_facts(layer_of(db), db),
    "attention_of_pairs": lambda db: attention_of_pairs(layer_of(db), db),
    "query_key_freedom": lambda db: query_key_freedom(layer_of(db), db),
    "term_accuracy": lambda db: term_accuracy(layer_of(db), db),
    "nonsense_pairs": nonsense_pairs,
    "nonsense_answers": lambda db: nonsense_answers(layer_of(db), db),
    "with_unknown": lambda db: with_unknown(db, 0.5),
    "Run": lambda db: Run("weather", db, CONFIG, 0, Recipe()),
}


@pytest.mark.parametrize("arity", FACTS)
@pytest.mark.parametrize("door", DOORS)
def test_facts_that_are_no_triples_are_refused_at_the_door(door: str, arity: str) -> None:
    with pytest.raises(InvalidArgumentError) as refusal:
        DOORS[door](FACTS[arity])
    message = str(refusal.value)
    # by its own name, and not by that of an attribute that it happens to read first
    assert not message.startswith("`")
    assert "needs facts of three columns, subject, predicate and object" in message
    assert f"have {arity[-1]}." in message
