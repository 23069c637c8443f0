"""Records of activations, heads and attention, and the checks of what is put in them.

`capacity.layer` and `capacity.evaluator` need nothing else of these rooms.
"""
