"""Decompositions as they are published: files of many formats, read exactly."""
