"""Exact linear algebra over the integers and the rational numbers: ranks, kernels, sparse terms.

It knows neither ranks of tensors nor databases nor certificates, and the trusted base rests on it
(`capacity.rank.verifier`).
"""
