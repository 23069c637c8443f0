"""Files, a tensor, or facts that are counted where they are: the arguments of commands."""
