"""Decompositions that are proved, made of numerical fits."""
