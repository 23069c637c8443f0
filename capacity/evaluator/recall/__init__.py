"""Recall of one layer: accuracies, fact by fact, bits, and what is certain despite rounding.

Predictions themselves are in `capacity.layer`, tables of many runs in `laws`.
"""
