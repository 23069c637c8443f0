"""Databases of facts as integer triples, and their 0/1 tensors."""

from capacity.optional import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
