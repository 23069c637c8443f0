"""Predictions compared with distributions: what a layer knows where no single object is right."""
