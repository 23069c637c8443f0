"""One set of facts has one digest and one set of counts, by whatever route it comes."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import distributed
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from capacity import Database, load
from capacity.database import from_pandas, from_rdflib, to_pandas, to_rdflib, write
from capacity.stores import StoreCounts, count_dask, count_duckdb, count_endpoint
from capacity.testing import rdf_databases
from tests.database.test_from_sparql import canonical
from tests.database.ways import WAYS, read_by
from tests.endpoints import Oxigraph, needs_oxigraph, oxigraph
from tests.formats import written
from tests.oracles import EXAMPLES
from tests.stores.recount import facts_of, recount
from tests.tiers import examples

ALL = "SELECT ?s ?p ?o { ?s ?p ?o }"
# which hold any terms
FORMATS = written("rdf", "table")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oxigraph]:
    with oxigraph(tmp_path_factory.mktemp("store")) as made:
        yield made


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    made: Any = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, protocol="tcp://",
        dashboard_address=None, silence_logs=50,  # type: ignore[arg-type]
    )  # fmt: skip
    with made as cluster:
        yield cluster.scheduler_address


def loaded(db: Database, folder: Path, server: Oxigraph) -> Iterator[tuple[str, Database]]:
    """The facts by each route into memory."""
    for format in FORMATS:
        path = folder / f"facts.{format}"
        write(db, path)
        yield format, load(path, multi="keep")
        for way in WAYS[:2]:
            with read_by(way):
                yield f"{format}, {way}", load(path, multi="keep")
        if format != "parquet":
            packed = folder / f"packed.{format}.gz"
            packed.write_bytes(gzip.compress(path.read_bytes()))
            yield f"{format}, compressed", load(packed, multi="keep")
    parts = folder / "parts"
    parts.mkdir()
    half = np.arange(db.n_facts) < db.n_facts // 2
    write(db.subset(~half), parts / "a.ttl")
    if half.any():
        write(db.subset(half), parts / "b.parquet")
    yield "parts", load(parts, multi="keep")
    yield "pandas", from_pandas(to_pandas(db, terms="n3"), table="n3", multi="keep")
    yield "rdflib", from_rdflib(to_rdflib(db), multi="keep")
    server.hold((folder / "facts.nquads").read_text(encoding="utf-8"))
    yield "SPARQL", Database.from_sparql(server.sparql, ALL, multi="keep")


def counted(folder: Path, server: Oxigraph) -> Iterator[tuple[str, StoreCounts]]:
    """The facts that `loaded` wrote, by each route that counts."""
    for format in FORMATS:
        yield format, count_duckdb(folder / f"facts.{format}")
    yield "SPARQL", count_endpoint(server.sparql)


def check(db: Database, folder: Path, server: Oxigraph) -> StoreCounts:
    digest = db.facts_sha256
    for route, found in loaded(db, folder, server):
        assert found == db, route
        assert found.facts_sha256 == digest, route
    expected = recount("", facts_of(db))
    for route, counts in counted(folder, server):
        assert replace(counts, source="", notes=()) == expected, route
    return expected


@pytest.mark.slow
@needs_oxigraph
@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rdf_databases().map(canonical))
def test_any_facts_are_the_same_by_every_route(server: Oxigraph, db: Database) -> None:
    with TemporaryDirectory() as folder:
        check(db, Path(folder), server)


@pytest.mark.slow
@needs_oxigraph
def test_a_real_file_is_the_same_by_every_route(
    server: Oxigraph, scheduler: str, tmp_path: Path
) -> None:
    expected = check(load(EXAMPLES / "countries.ttl"), tmp_path, server)
    for format in FORMATS:
        on_cluster = count_dask(tmp_path / f"facts.{format}", scheduler)
        assert replace(on_cluster, source="", notes=()) == expected, format
