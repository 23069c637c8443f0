"""How big a database is: bounds, certified intervals and estimates of its tensor's rank."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
