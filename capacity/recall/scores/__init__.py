"""Scores of answers: log-likelihoods by causal models and decoders, or by masked models."""
