"""The graph engine: many runs in one padded batch, with analytic gradients, on any device."""
