"""Syntax of RDF folded to the facts that it stands for: lists, restrictions, statement nodes."""
