"""What a database is made of: a row a predicate, the rank that each carries, and advice."""
