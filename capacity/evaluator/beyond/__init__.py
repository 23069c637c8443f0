"""Assertions of a layer beside the facts that it was trained on."""
