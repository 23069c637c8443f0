"""Ends of what a layer holds while W_E, W_Q and W_K stay as they are, and W_V, W_O, W_U are free.

With them the *gates* a_h(k, q) are fixed, the attention of head h from predicate q to subject k
(equation (5)), and only linear maps are left: after the pair (k, q) the residual stream is

    x = e_q + sum_h psi_h W_V^h W_O^h,    psi_h = a_h e_k + (1 - a_h) e_q.

* `gate_rank`: how many pairs get any objects whatever, a lower end.
* `construction`: the layer that gives them.
* `counts`: what share of all assignments of objects can be held at most, an upper end.

Proofs: docs/concepts/frozen-gates.md.

References
----------
Wong 2025, (2) to (8). Cover 1965, Warren 1968 (Theorem 3) for the counts; Edmonds 1968 for unions
of matroids.
"""
