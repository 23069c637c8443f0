"""Upper bounds of the rank, a module a method."""
