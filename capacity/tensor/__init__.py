"""Tensors of integers of any order, by their nonzero entries.

===============================================  =================================================
`SparseTensor`                                   a tensor, which can be added, subtracted, scaled
`from_dense`, `from_coo`, `from_fractions`       make one of arrays, of entries, of fractions
`from_counts`                                    the n-grams of a text, counted
`as_tensor`                                      whatever a tensor is given as
`read_tensor`, `write_tensor`                    files: ``.npy`` and FROSTT's ``.tns``
`direct_sum`, `kronecker`, `outer`               join tensors
`simple_tensor`, `from_factors`                  tensors of rank one, and sums of them
`permuted`, `grouped`, `sub_tensor`              other orders, groups and parts of the modes
`matrix_multiplication`, `polynomial_product`    tensors of products,
`group_algebra`, `polynomials_modulo`, ...       of algebras,
`w_state`, `ghz_state`, `determinant`, ...       and others from the literature
`KNOWN_RANKS`                                    a table of such tensors with their ranks
===============================================  =================================================

Entries are exact: what isn't an integer of at most 63 bits is refused in words, also as the result
of an operation. The room needs numpy alone.

Examples
--------
>>> from capacity.tensor import complex_numbers, from_dense
>>> complex_product = from_dense([[[1, 0], [0, 1]], [[0, 1], [-1, 0]]])
>>> complex_product == complex_numbers()
True
>>> {known.name: known.rank for known in KNOWN_RANKS}["complex numbers"]
3
"""

from capacity.optional import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
