"""Facts where they are: counted in files and stores of any size, and never loaded.

Counts of a database that aggregate queries can compute bound its rank from both sides, with the
proofs in `capacity.stores.counts`. They are made out of core from files (`count_duckdb`),
and by aggregate queries of SPARQL endpoints (`count_endpoint`).
"""

from capacity.optional import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
