"""Analysis of what attention uses: effective attention, identifiability, additive decomposition."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
