"""Facts that a language model knows: templates, scores of answers, and the facts as a database."""

from capacity.optional import lazy_names, make_callable

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
make_callable(__name__, "capacity.recall.asking:recall")
