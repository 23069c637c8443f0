"""Numerical CP decompositions: estimates of the rank, and fits that are made exact."""
