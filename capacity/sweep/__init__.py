"""Sweeps: many (database, layer, seed, recipe) runs, stored so that a kill loses little."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
