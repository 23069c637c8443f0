"""The layer itself: sizes, first weights, forward pass, tensor L, files.

How it is trained is in `training` and `run`, by which code in `engines`.
"""
