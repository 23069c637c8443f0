"""Descriptions of databases: a row a predicate, the rank that each carries, and advice."""
