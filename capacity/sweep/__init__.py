"""Sweeps: many (database, layer, seed, recipe) runs, stored so that a kill loses little."""

from capacity.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
