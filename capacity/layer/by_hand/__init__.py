"""Layers written by hand, which hold any facts."""
