"""How many facts an attention layer can hold, and how big a database of facts is.

A database of facts (subject, predicate, object) is a 0/1 3-tensor D; a single-layer attention-only
decoder is a 3-tensor L of the same shape. The rank of D measures the size of the database, and the
rank of L the capacity of the layer (L. Z. Wong, Paying Attention to Facts, 2025, arXiv 2502.05076).

Names load on first use: asking for a rank imports neither torch nor seaborn.
"""

import lazy_loader

from capacity._version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]
