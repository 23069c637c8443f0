"""Proved dimensions: as data, as JSON, and in words."""
