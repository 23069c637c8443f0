"""Counts of a store's facts, and what they prove of the rank, wherever they come from."""
