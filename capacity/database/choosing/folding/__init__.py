"""Syntax of RDF folded to the facts that it denotes: lists, restrictions, statement nodes."""
