"""The residual stream as a sum of terms: decomposition, importance, prediction from terms."""
