"""Lengths in bits of codes for the objects of facts."""
