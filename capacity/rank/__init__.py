"""Bounds, certified intervals and estimates of the rank of a database's tensor."""

from capacity.optional import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
