"""Texts of queries: their terminals, their parts, and terms in the place of variables."""
