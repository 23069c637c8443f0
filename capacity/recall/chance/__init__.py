"""Random parts of the facts, beside which what a model knows is measured."""
