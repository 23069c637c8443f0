"""Figures drawn from tables that are computed elsewhere, in one theme.

Each function returns a figure that isn't registered with pyplot, and writes it to `path` if that is
given (`save_figure`). All of them raise `StorageError` if the file can't be written, of which no
part is left then, and `MissingExtraError` without seaborn and matplotlib (extra ``plots``).
"""

from capacity.optional import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
