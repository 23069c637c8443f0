"""Vectors of the processor as values in numba: what compiled engines are made of."""
