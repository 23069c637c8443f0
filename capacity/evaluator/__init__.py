"""Evaluation of layers: accuracies, decoded facts, logit terms, and laws over many runs."""

from capacity.optional import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
