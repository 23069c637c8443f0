"""BEAR and LAMA as facts, templates and candidates, of tables made by hand in their formats."""

from __future__ import annotations

import io
from typing import Any

import pandas as pd
import pytest

from capacity.errors import CapacityError, InvalidArgumentError
from capacity.recall import from_bear, from_lama, recall
from tests.recall.tiny_language_models import TEMPLATES, facts, trained

# as the lines of P36.jsonl and P47.jsonl
CAPITALS = """
{"sub_id": "Q20", "sub_label": "Norway", "obj_id": "Q585", "obj_label": "Oslo"}
{"sub_id": "Q17", "sub_label": "Japan", "obj_id": "Q1490", "obj_label": "Tokyo"}
{"sub_id": "Q419", "sub_label": "Peru", "obj_id": "Q2868", "obj_label": "Lima"}
"""
BORDERS = """
{"sub_id": "Q20", "sub_label": "Norway", "obj_id": "Q17"}
{"sub_id": "Q20", "sub_label": "Norway", "obj_id": "Q100"}
{"sub_id": "Q20b", "sub_label": "Norway", "obj_id": "Q17"}
"""
METADATA: dict[str, dict[str, Any]] = {
    "P36": {
        "templates": ["The capital of [X] is [Y].", "[Y] is the capital of [X]"],
        "answer_space_labels": ["Tokyo", "Oslo", "Lima", "N'Djamena"],
        "answer_space_ids": ["Q1490", "Q585", "Q2868", "Q3604"],
        "relation_info": {"cardinality": "single instance per answer"},
    },
    "P47": {
        "templates": ["[X] borders [Y]."],
        "answer_space_labels": ["Japan", "Guinea-Bissau"],
        "answer_space_ids": ["Q17", "Q100"],
    },
}
LAMA = """
{"uuid": "a", "obj_uri": "Q585", "obj_label": "Oslo", "sub_uri": "Q20", "sub_label": "Norway", "predicate_id": "P36", "evidences": [{"obj_surface": "Oslo"}]}
{"uuid": "b", "obj_uri": "Q1490", "obj_label": "Tokyo", "sub_uri": "Q17", "sub_label": "Japan", "predicate_id": "P36", "evidences": []}
{"uuid": "c", "obj_uri": "Q17", "obj_label": "Japan", "sub_uri": "Q20", "sub_label": "Norway", "predicate_id": "P47", "evidences": []}
{"uuid": "d", "obj_uri": "Q17", "obj_label": "Japan", "sub_uri": "Q20", "sub_label": "Norway", "predicate_id": "P47", "evidences": []}
"""  # noqa: E501
RELATIONS = """
{"relation": "P36", "template": "The capital of [X] is [Y] .", "label": "capital", "type": "1-1"}
{"relation": "P47", "template": "[X] shares border with [Y] .", "label": "borders", "type": "N-M"}
{"relation": "P19", "template": "[X] was born in [Y] .", "label": "birth", "type": "N-1"}
"""


def lines(text: str) -> pd.DataFrame:
    return pd.read_json(io.StringIO(text.strip()), lines=True)


def triples(probe: Any) -> list[tuple[str, ...]]:
    return sorted(tuple(map(str, fact)) for fact in probe.facts)


def test_bear_is_read_with_its_templates_and_answer_spaces() -> None:
    probe = from_bear({"P36": lines(CAPITALS), "P47": lines(BORDERS)}, METADATA)
    assert triples(probe) == [
        ("Japan", "P36", "Tokyo"), ("Norway", "P36", "Oslo"), ("Norway", "P47", "Guinea-Bissau"),
        ("Norway", "P47", "Japan"), ("Peru", "P36", "Lima"),
    ]  # fmt: skip
    assert probe.templates == {
        "P36": ("The capital of {subject} is {object}.", "{object} is the capital of {subject}"),
        "P47": ("{subject} borders {object}.",),
    }
    # an answer that is no object is compared, too
    assert probe.candidates == {
        "P36": ("Tokyo", "Oslo", "Lima", "N'Djamena"), "P47": ("Japan", "Guinea-Bissau"),
    }  # fmt: skip
    assert probe.notes == (
        "Items that are there a second time, and are no further fact: 1.",
        "Labels of several subjects: 1, such as 'Norway'. Those with one label are one subject "
        "here, and any of their objects is a right answer.",
    )


def test_lama_is_read_with_its_templates() -> None:
    probe = from_lama(lines(LAMA), lines(RELATIONS))
    assert triples(probe) == [
        ("Japan", "P36", "Tokyo"), ("Norway", "P36", "Oslo"), ("Norway", "P47", "Japan"),
    ]  # fmt: skip
    # relations without items have no template
    assert probe.templates == {
        "P36": ("The capital of {subject} is {object}.",),
        "P47": ("{subject} shares border with {object}.",),
    }
    assert probe.candidates == {}
    assert len(probe.notes) == 1
    google = lines(LAMA).rename(columns={"predicate_id": "pred"})
    assert from_lama(google, lines(RELATIONS)).facts == probe.facts


def test_a_model_is_asked_the_questions_of_a_probe() -> None:
    model, tokenizer = trained()
    probe = from_bear({"P36": lines(CAPITALS)}, METADATA)
    one = {"P36": probe.templates["P36"][:1]}
    assert one["P36"] == (TEMPLATES["capital"][0],)
    found = recall(model, tokenizer, probe.facts, one, candidates=probe.candidates)
    assert set(found.table["n_candidates"]) == {4}
    assert found.known() == probe.facts
    # the same scores as of facts that were not converted
    same = recall(model, tokenizer, facts().select(predicates="capital"), {"capital": one["P36"]})
    scores = same.table.set_index("subject")["score"]
    for row in found.table.to_dict("records"):
        assert row["score"] == pytest.approx(scores[row["subject"]], abs=1e-12)


def test_labels_are_texts_in_one_line_and_braces_are_no_places() -> None:
    table = pd.DataFrame({"sub_label": ["a  b\n"], "obj_label": [1999]})
    probe = from_bear({"r": table}, {"r": {"templates": [" {[X]} in [Y]"]}})
    assert triples(probe) == [("a b", "r", "1999")]
    assert probe.templates == {"r": ("({subject}) in {object}",)}


def changed(**columns: Any) -> dict[str, pd.DataFrame]:
    return {"P36": lines(CAPITALS).assign(**columns)}


@pytest.mark.parametrize(
    ("tables", "metadata", "message"),
    [({"P1": lines(CAPITALS)}, METADATA, "'P1' has none"),
     (changed(sub_label=None), METADATA, "sub_label is None in one"),
     (changed(obj_label=" "), METADATA, "obj_label is ' ' in one"),
     (changed(obj_label="Rome"), METADATA, "'Rome' is missing"),
     ({"P36": lines(CAPITALS)[[]]}, METADATA, "must have the column sub_label"),
     ({"P36": lines(CAPITALS)[:0]}, METADATA, "must have a row"),
     ({"P36": lines(CAPITALS).drop(columns=["obj_label", "obj_id"])}, METADATA, "obj_label"),
     ({"P47": lines(BORDERS)}, {"P47": {"templates": ["[X] [Y]"]}}, "obj_label"),
     ({"P47": lines(BORDERS).assign(obj_id="Q1")}, METADATA, "obj_label is nan in one"),
     ({"P36": [1]}, METADATA, "must be a DataFrame"),
     ({"P36": lines(CAPITALS)}, {"P36": {}}, "must have templates"),
     ({"P36": lines(CAPITALS)}, {"P36": {"templates": "[X] [Y]"}}, "must have templates"),
     ({"P36": lines(CAPITALS)}, {"P36": {"templates": ["[X]"]}}, "contains them 1 and 0 times")],
)  # fmt: skip
def test_tables_of_another_form_are_refused(tables: Any, metadata: Any, message: str) -> None:
    with pytest.raises(CapacityError, match=message):
        from_bear(tables, metadata)


def test_lama_without_a_template_or_a_relation_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="'P47' has none"):
        from_lama(lines(LAMA), lines(RELATIONS)[:1])
    with pytest.raises(InvalidArgumentError, match="column predicate_id or pred"):
        from_lama(lines(LAMA).drop(columns="predicate_id"), lines(RELATIONS))
