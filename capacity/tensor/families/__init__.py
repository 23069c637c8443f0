"""Tensors of theory: algebras, groups, states, and a table of those whose rank is known.

None is drawn at random; `capacity.testing` draws.
"""
