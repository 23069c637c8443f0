"""Record the activations of pretrained models: hooks, families, checks, folders."""
