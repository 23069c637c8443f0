"""Sweeps: many (database, layer, seed, recipe) runs, stored so that a kill loses little."""

from capacity.optional import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
