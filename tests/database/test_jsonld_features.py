"""Fifty JSON-LD documents of one feature each are read as pyld 3.0 reads them.

``jsonld_features.json`` has each document, and the facts that pyld's ``to_rdf`` wrote of it with
the base http://b/doc, when the file was made.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest

from capacity.database import parse_rdf
from capacity.database.io.rdf.type_maps import without_type_maps
from tests.oracles import ROOT

FEATURES: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("jsonld_features.json").read_text(encoding="utf-8")
)
# the facts here, and why they differ
OTHER = {
    "a direction": (
        {'<http://e/g> <http://e/p> "a"@ar--rtl'},
        "JSON-LD 1.1 drops the base direction, and RDF 1.2 has it: it is kept",
    ),
    "a malformed language": (
        set[str](),
        "JSON-LD 1.1 Processing Algorithms, 8.2.2: a value with it is no fact",
    ),
}


def canonical(quads: Any) -> set[str]:
    """Facts with canonical names of blank nodes."""
    dataset = ox.Dataset(quads)
    dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return set(map(str, dataset))


@pytest.mark.parametrize("row", FEATURES, ids=lambda row: row["feature"])
def test_a_feature_is_read_as_by_pyld(row: dict[str, Any]) -> None:
    text = json.dumps(row["document"], ensure_ascii=False)
    data = without_type_maps("a", text.encode())
    read = canonical(ox.parse(data, format=ox.RdfFormat.JSON_LD, base_iri="http://b/doc"))
    if row["feature"] in OTHER:
        assert read == OTHER[row["feature"]][0]
    else:
        facts = "\n".join(row["facts"]).encode()
        assert read == canonical(ox.parse(facts, format=ox.RdfFormat.N_QUADS))
    # the reader has as many, of all graphs
    db = parse_rdf(text, "jsonld", base="http://b/doc", multi="keep", allow_empty=True)
    assert db.n_facts == len(read)


def test_each_difference_is_explained_on_the_page() -> None:
    page = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    for feature, (_, why) in OTHER.items():
        assert f"| {feature} | {why} |" in page
