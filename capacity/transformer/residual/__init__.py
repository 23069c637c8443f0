"""The residual stream as a sum of terms: additive decomposition and what each term does."""
