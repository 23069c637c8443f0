"""SPARQL endpoints: facts that a query selects, fetched whole or not at all.

`reading` makes a `Database` of a query, and `pages` keeps a part of the rows from passing for all
of them. `queries`, `parameters` and `lexing` know the query language, and `client`, `endpoints`,
`bodies` and `answers` the protocol.
"""
