"""Whether attention can be read off what a model computes: null spaces, ranks, alternatives."""
