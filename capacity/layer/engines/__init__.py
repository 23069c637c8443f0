"""Engines: different arithmetic for the same training. `reference` defines the result."""
