"""Effective attention: the part of attention that reaches the output."""
