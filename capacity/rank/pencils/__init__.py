"""Explicit decompositions of tensors with two slices, and of combinations of two."""
