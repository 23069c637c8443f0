from .cluster.dask import count_dask as count_dask
from .counts.counts import StoreCounts as StoreCounts
from .counts.predicate_counts import PredicateCounts as PredicateCounts
from .duckdb import count_duckdb as count_duckdb
from .endpoint.sparql import count_endpoint as count_endpoint
