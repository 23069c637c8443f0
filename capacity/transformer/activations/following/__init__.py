"""Recording of a model's operations while it runs, from its attention to its residual stream."""
