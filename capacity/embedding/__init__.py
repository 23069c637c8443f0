"""The dimension that an embedding of a graph needs: proofs, witnesses, an estimate."""

from capacity.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
