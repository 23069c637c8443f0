"""Whether layers memorised their databases, and accuracy grids over many runs."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
