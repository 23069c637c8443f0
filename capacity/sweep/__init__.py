"""Sweeps: many (database, layer, seed, recipe) runs, stored so that a kill loses little."""

from capacity.optional import lazy_names, make_callable

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
make_callable(__name__, "capacity.sweep.execute:sweep")
