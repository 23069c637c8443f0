"""The parts of a decoder: a file for each kind, and a line here that registers it."""

from __future__ import annotations

from capacity.layer.decoder.parts.attention import ATTENTION
from capacity.layer.decoder.parts.embedding import EMBEDDING
from capacity.layer.decoder.parts.mlp import MLP
from capacity.layer.decoder.parts.norm import NORM
from capacity.layer.decoder.parts.part import register_part
from capacity.layer.decoder.parts.unembedding import UNEMBEDDING

for _part in (EMBEDDING, ATTENTION, MLP, NORM, UNEMBEDDING):
    register_part(_part)
