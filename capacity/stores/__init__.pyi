from .cluster.dask import count_dask as count_dask
from .counts import PredicateCounts as PredicateCounts
from .counts import StoreCounts as StoreCounts
from .duckdb import count_duckdb as count_duckdb
from .sparql import count_endpoint as count_endpoint
from .staging import CountingOptions as CountingOptions
