"""The reference engine: autograd, one run at a time, on any device."""
