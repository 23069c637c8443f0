"""The blocked engine: large layers, a block of facts at a time, with analytic gradients."""
