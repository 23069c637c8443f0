"""Facts of countries and of chemical elements in words, and sentences that ask for them.

* ``countries``: examples/countries.ttl (GeoNames, CC BY 4.0): of each country its capital, the name
  of its currency, its continent, the first of its languages by its English name (ISO 639 in
  pycountry, LGPL 2.1), its code, its top-level domain, and its neighbours, several for a country;
* ``elements``: of each chemical element its symbol, its atomic number and its group of elements
  with a name (mendeleev, MIT).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from functools import cache

import numpy as np

from capacity import Database, load
from experiments.common.models import folder_of
from experiments.dimension.graphs import COUNTRIES

Triple = tuple[str, str, str]
CONTINENTS = {
    "AF": "Africa", "AN": "Antarctica", "AS": "Asia", "EU": "Europe", "NA": "North America",
    "OC": "Oceania", "SA": "South America",
}  # fmt: skip
# those of smaller countries, islands most of them, have little text in any language
LEAST_POPULATION = 100_000
# the first template of each predicate has its object last, so that answers can be attributed
TEMPLATES: dict[str, dict[str, tuple[str, ...]]] = {
    "countries": {
        "capital": (
            "The capital of {subject} is {object}.",
            "{subject}'s capital city is {object}.",
            "{object} is the capital of {subject}.",
        ),
        "currency": (
            "The currency of {subject} is the {object}.",
            "People in {subject} pay with the {object}.",
        ),
        "continent": (
            "{subject} is a country in {object}.",
            "The continent of {subject} is {object}.",
        ),
        "language": (
            "The official language of {subject} is {object}.",
            "Most people in {subject} speak {object}.",
        ),
        "code": (
            "The two-letter country code of {subject} is {object}.",
            "{object} is the ISO country code of {subject}.",
        ),
        "domain": (
            "The internet country domain of {subject} is {object}.",
            "The addresses of websites in {subject} end in {object}.",
        ),
        "neighbour": (
            "{subject} shares a border with {object}.",
            "The neighbours of {subject} include {object}.",
        ),
    },
    "elements": {
        "symbol": (
            "The chemical symbol of {subject} is {object}.",
            "{object} is the symbol of the element {subject}.",
        ),
        "number": (
            "The atomic number of {subject} is {object}.",
            "The nucleus of {subject} has {object} protons.",
        ),
        "group": (
            "The element {subject} is one of the {object}.",
            "Chemists count {subject} among the {object}.",
        ),
    },
}


@cache
def columns() -> Mapping[str, Mapping[str, str]]:
    """The columns of each country, by its code."""
    db = load(COUNTRIES)
    found: dict[str, dict[str, str]] = {}
    for s, q, o in db:
        found.setdefault(db.name(s).partition(":")[2], {})[db.name(q).partition(":")[2]] = o.text
    return found


def population(name: str) -> int:
    """Number of people in a country."""
    return int(next(of for of in columns().values() if of["name"].strip() == name)["population"])


@cache
def facts_of(store: str, n_subjects: int, seed: int) -> Database:
    """All facts of subjects that are drawn at random, those of countries by their names."""
    subjects = sorted({s for s, _, _ in whole(store)})
    drawn = np.random.default_rng(seed).choice(subjects, n_subjects, replace=False)
    chosen = set(drawn.tolist())
    return Database.from_triples((row for row in whole(store) if row[0] in chosen), multi="keep")


@cache
def whole(store: str, least_population: int = LEAST_POPULATION) -> list[Triple]:
    """All facts of a store, those of countries from a population on."""
    return list(_countries(least_population) if store == "countries" else _elements())


def _countries(least_population: int) -> Iterator[Triple]:
    names = {code: of["name"].strip() for code, of in columns().items()}
    languages = _languages()
    for code, of in columns().items():
        if int(of["population"]) < least_population:
            continue
        cells = {
            "capital": of.get("capital"),
            "currency": of.get("currencyname"),
            "continent": CONTINENTS[of["continentcode"]],
            "language": languages.get(of.get("languages", "").split(",")[0].split("-")[0]),
            "code": code,
            "domain": of.get("tld"),
        }
        for predicate, cell in cells.items():
            if cell:
                yield names[code], predicate, cell.strip()
        for other in filter(None, of.get("neighbours", "").split(",")):
            yield names[code], "neighbour", names[other]


def _languages() -> dict[str, str]:
    """English names of languages by their codes of two letters: Greek for Modern Greek (1453-)."""
    path = folder_of("pycountry") / "databases" / "iso639-3.json"
    rows = json.loads(path.read_text(encoding="utf-8"))["639-3"]
    return {
        row["alpha_2"]: row["name"].partition(" (")[0].removeprefix("Modern ")
        for row in rows if "alpha_2" in row
    }  # fmt: skip


def _elements() -> Iterator[Triple]:
    path = folder_of("mendeleev") / "elements.db"
    query = (
        "SELECT e.name, e.symbol, e.atomic_number, s.name FROM elements e "
        "JOIN series s ON s.id = e.series_id WHERE e.atomic_number <= 103"
    )
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        for name, symbol, number, series in connection.execute(query):
            yield name.lower(), "symbol", symbol
            yield name.lower(), "number", str(number)
            yield name.lower(), "group", series.lower()
