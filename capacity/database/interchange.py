"""The readers and writers that `Database` offers as methods, each loaded when it is called.

The formats' own modules (`files`, `rdf`, `tables`, `tensor`) hold the work and its documentation;
they import pandas, rdflib, networkx and tensorly only where those are used.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from capacity.database.policy import MultiPolicy

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd
    import rdflib
    import scipy.sparse

    from capacity.database.facts import Database
    from capacity.database.io.tables import TableTerms

DENSE_BUDGET = 2**30


class Interchange:
    """Readers and writers of `Database`, which is the only class to derive from this one."""

    @property
    def _database(self) -> Database:
        return cast("Database", self)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,
        multi: MultiPolicy | None = None,
    ) -> Database:
        """Read a file of facts, RDF or a table; `capacity.database.io.load.load` says how."""
        from capacity.database.io.load import load

        return load(path, format=format, multi=multi)

    @classmethod
    def from_rdf(
        cls,
        source: str | os.PathLike[str] | rdflib.Graph,
        *,
        format: str | None = None,
        graph: str | None = None,
        multi: MultiPolicy | None = None,
    ) -> Database:
        """Read an RDF file or an rdflib graph; `capacity.database.io.rdf.from_rdf` says how."""
        from capacity.database.io.rdf import from_rdf

        return from_rdf(source, format=format, graph=graph, multi=multi)

    @classmethod
    def from_rdf_string(
        cls,
        text: str | bytes,
        format: str,
        *,
        graph: str | None = None,
        multi: MultiPolicy | None = None,
    ) -> Database:
        """Read RDF text in a named format; `capacity.database.io.rdf.from_rdf_string` says how."""
        from capacity.database.io.rdf import from_rdf_string

        return from_rdf_string(text, format, graph=graph, multi=multi)

    @classmethod
    def from_table(
        cls,
        source: str | os.PathLike[str] | pd.DataFrame,
        *,
        format: str | None = None,
        terms: TableTerms = "label",
        multi: MultiPolicy | None = None,
    ) -> Database:
        """Read TSV, CSV or a DataFrame; `capacity.database.io.tables.from_table` says how."""
        from capacity.database.io.tables import from_table

        return from_table(source, format=format, terms=terms, multi=multi)

    @classmethod
    def from_networkx(
        cls, graph: nx.Graph[Any], *, predicate: str = "predicate", multi: MultiPolicy | None = None
    ) -> Database:
        """Read a directed networkx graph; `capacity.database.io.tables.from_networkx` says how."""
        from capacity.database.io.tables import from_networkx

        return from_networkx(graph, predicate=predicate, multi=multi)

    def to_coo(self) -> scipy.sparse.coo_array[Any, tuple[int, int, int]]:
        """Write D as a 3-dimensional ``scipy.sparse.coo_array`` of int8."""
        from capacity.database.tensor import to_coo

        return to_coo(self._database)

    def to_numpy(
        self, dtype: DTypeLike = np.int8, *, max_bytes: int = DENSE_BUDGET
    ) -> NDArray[Any]:
        """Write D as a dense array, shape (n_subjects, n_predicates, n_objects).

        Raises
        ------
        MemoryBudgetError
            Before allocating, if the array would take more than `max_bytes` bytes.
        """
        from capacity.database.tensor import to_numpy

        return to_numpy(self._database, dtype, max_bytes=max_bytes)

    def to_tensorly(self, *, max_bytes: int = DENSE_BUDGET) -> Any:
        """Write D as a dense float64 tensor of tensorly's current backend."""
        import tensorly

        return tensorly.tensor(self.to_numpy(np.float64, max_bytes=max_bytes))

    def to_pandas(self, *, terms: TableTerms | None = None) -> pd.DataFrame:
        """Write the facts as a DataFrame; `capacity.database.io.tables.to_pandas` says how."""
        from capacity.database.io.tables import to_pandas

        return to_pandas(self._database, terms=terms)

    def to_tsv(self, path: str | os.PathLike[str], *, terms: TableTerms | None = None) -> None:
        """Write the facts as TSV; `capacity.database.io.tables.to_tsv` says how."""
        from capacity.database.io.tables import to_tsv

        to_tsv(self._database, path, terms=terms)

    def to_networkx(self) -> nx.MultiDiGraph[Any]:
        """Write the facts as a graph; `capacity.database.io.tables.to_networkx` says how."""
        from capacity.database.io.tables import to_networkx

        return to_networkx(self._database)

    def to_rdflib(self, *, base: str | None = None) -> rdflib.Graph:
        """Write the facts as an rdflib graph; `capacity.database.io.rdf.to_rdflib` says how."""
        from capacity.database.io.rdf import to_rdflib

        return to_rdflib(self._database, base=base)
