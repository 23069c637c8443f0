"""Where SmolLM2-135M keeps capitals: figures that a prototype of other code found before."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import capacity
from capacity import Database
from capacity.recall import ablation_test, fact_attribution, head_table, mean_attention
from experiments.common.models import smollm2

pytestmark = [pytest.mark.slow, pytest.mark.full]
TEMPLATES = {"capital": "The capital of {subject} is {object}."}


@cache
def asked() -> tuple[Any, Any, Database]:
    """The model, and the capitals of the 60 most populous countries."""
    db = capacity.load("examples/countries.ttl")

    def column(name: str) -> dict[Any, str]:
        return {s: o.text for s, _, o in db.select(predicates=name)}

    names, capitals, people = (column(f"col:{one}") for one in ("name", "capital", "population"))
    largest = sorted(people, key=lambda s: -int(people[s]))[:60]
    rows = [(names[s], "capital", capitals[s]) for s in largest]
    return *smollm2(), Database.from_triples(rows)


def test_one_head_carries_most_of_what_it_knows_of_capitals() -> None:
    found = fact_attribution(*asked(), TEMPLATES)
    assert found.off < 1e-5
    assert len(found.known) == 47
    assert found.heads(2) == [(23, 4), (29, 1)]
    heads = found.by_component().query("component == 'head'").head(2)
    # the first reads the subject, the second what earlier layers have written to the last token
    assert (heads["from_subject"] > 0.95 * heads["part"]).tolist() == [True, False]


def test_that_head_holds_half_of_the_capitals_in_about_sixteen_directions() -> None:
    found = head_table(*asked(), TEMPLATES, layer=23, head=4)
    held = found.summary().set_index("read")["held"].to_dict()
    assert held == {"attention": 30, "subject": 30, "embeddings": 2}
    (table, *_) = found.tables
    assert table.rank == 59
    assert 12 <= table.n_directions <= 24
    assert found.by_rank([16]).iloc[0]["accuracy_calibrated"] >= 0.45


def test_it_forgets_capitals_without_that_head_and_keeps_them_without_others() -> None:
    found = ablation_test(*asked(), TEMPLATES, n_heads=[1], n_random=4)
    assert found.heads == ((23, 4),)
    kept = found.table.set_index("set")["kept"].to_dict()
    assert kept["chosen"] <= 0.5
    assert kept["random"] >= 0.85


def test_queries_and_keys_of_its_last_layers_carry_little() -> None:
    found = mean_attention(*asked(), TEMPLATES, layers=[23, 29])
    assert (found.table["kept"] >= 0.85).all()
