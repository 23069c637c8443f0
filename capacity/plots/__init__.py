"""Figures drawn from tables that are computed elsewhere, in one theme."""

from capacity.optional import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
