"""How big a database is: bounds, certified intervals and estimates of its tensor's rank."""

from capacity.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
