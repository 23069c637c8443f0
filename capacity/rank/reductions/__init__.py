"""Reductions to smaller tensors that determine the rank, and the way back."""
