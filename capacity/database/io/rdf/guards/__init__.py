"""Limits of nesting and of size that a text keeps before a parser sees it."""
