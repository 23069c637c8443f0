"""Analyses of transformers: effective attention, identifiability, additive decomposition."""

from capacity.optional import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
