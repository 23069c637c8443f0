"""Exact linear algebra over the integers and the rational numbers: ranks, kernels, sparse terms.

It uses no code of ranks of tensors, databases or certificates. The trusted base rests on it
(`capacity.rank.verifier`).
"""
