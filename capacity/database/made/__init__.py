"""Databases that are made: of rules and structure, at random, of algebras."""
