"""Counts that a SPARQL endpoint makes itself."""
