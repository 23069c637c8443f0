"""Bounds, certified intervals and estimates of the rank of a database's tensor."""

from capacity.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
