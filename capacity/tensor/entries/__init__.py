"""Coordinates and values of the entries of a tensor, before there is a tensor.

What works on a whole `SparseTensor` or `DenseTensor` stands beside this room.
"""
