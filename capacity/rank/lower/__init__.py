"""Lower bounds of the rank, a module a method."""
