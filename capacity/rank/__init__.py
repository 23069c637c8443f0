"""Bounds, certified intervals and estimates of the rank of a database's tensor."""

from capacity.optional import lazy_names, make_callable

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
make_callable(__name__, "capacity.rank.analysis:rank_interval")
