"""Tensors and databases whose rank is a theorem."""
