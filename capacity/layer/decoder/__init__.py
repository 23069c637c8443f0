"""Decoders beyond the paper's layer: MLPs, norms, biases, positions and several layers.

A decoder is a list of parts (`structure`); a part is a file of `parts`, with its weights, its
definition by torch, and its record for the tape engine. `config` has the sizes and options, and
`decoder` the module of torch.
"""

import capacity.layer.decoder.parts  # noqa: F401  (registers them)
