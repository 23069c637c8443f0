"""Signs that a graph demands of scores, and the dimensions that they need."""
