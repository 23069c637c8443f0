"""The fused engine: all of training one small layer in compiled code, on one thread of a CPU."""
