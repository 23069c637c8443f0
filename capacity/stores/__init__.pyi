from .counts import StoreCounts as StoreCounts
from .dask import count_dask as count_dask
from .duckdb import count_duckdb as count_duckdb
from .predicate_counts import PredicateCounts as PredicateCounts
from .sparql import count_endpoint as count_endpoint
