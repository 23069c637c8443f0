"""Whether layers memorised their databases, and accuracy grids over many runs."""

from capacity.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
