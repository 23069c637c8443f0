"""Predictions of a layer, and the facts that they recall."""
