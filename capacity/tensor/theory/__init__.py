"""Tensors of theory: products of matrices and of polynomials, algebras, groups, and states.

The tensor of a bilinear map (x, y) -> z has the entry t at (i, j, k) if z_k holds t x_i y_j; for an
algebra it holds the structure constants. Its rank is the number of multiplications, other than by
constants, that computing the map takes (V. Strassen, Vermeidung von Divisionen, 1973; P. Bürgisser,
M. Clausen, M. A. Shokrollahi, Algebraic Complexity Theory, 1997, chapter 14). `KNOWN_RANKS` has the
ranks that are known, and `named_tensor` a name for each.

`products` has bilinear maps of matrices and polynomials, `algebras` associative algebras,
`lie_algebras` these and the exterior algebra, `groups` the tables of finite groups, and `states`
quantum states and multilinear forms, of any order. None is drawn at random; `capacity.testing`
draws.
"""
