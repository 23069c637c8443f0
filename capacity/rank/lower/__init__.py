"""Lower bounds of the rank, one method per module."""
