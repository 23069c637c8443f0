"""Walks over F_2 through decompositions with a cyclic symmetry, whose results are lifted."""
