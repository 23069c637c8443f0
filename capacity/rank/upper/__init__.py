"""Upper bounds of the rank, one method per module."""
