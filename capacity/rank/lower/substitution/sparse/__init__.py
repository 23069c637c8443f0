"""The substitution method on tensors that are too large for masks."""
