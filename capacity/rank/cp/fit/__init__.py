"""Numerical decompositions by least squares."""
