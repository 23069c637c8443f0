"""A folder of a sweep: what lies where, what its rows are, and how parts of it share it."""
