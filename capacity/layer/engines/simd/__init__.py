"""Vectors of the processor as values in numba: what compiled engines are made of."""

# numbers in a row of the fused engine's kernels, so its largest d_model
ROW = 8
