"""Walks in the flip graph over F_3, and lifts of what they find to the rationals."""
