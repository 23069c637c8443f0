"""Families of models: one in each module of this folder, which names its `Model` as ``MODEL``."""
