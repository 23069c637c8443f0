"""Identifiability of attention from a model's outputs: null spaces, ranks, other attention."""
