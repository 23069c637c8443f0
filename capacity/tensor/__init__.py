"""Tensors of integers of any order, by their nonzero entries: make, read, write, known ones."""

from capacity.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
