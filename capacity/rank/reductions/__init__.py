"""Smaller tensors with the same rank, and the way back."""
