"""Numerical CP decompositions: estimates of the rank, and fits turned into exact proofs."""
