"""The dimension that an embedding of a graph needs: proofs, witnesses, an estimate."""

from capacity.optional import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
