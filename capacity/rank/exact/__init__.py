"""Exact linear algebra: ranks, minors and factors of integer matrices."""
