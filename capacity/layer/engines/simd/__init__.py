"""Vectors of the processor as values in numba, for the compiled engines."""

# numbers in a row of the fused engine's kernels, and so its largest d_model
ROW = 8
