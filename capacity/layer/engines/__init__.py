"""Engines: implementations of the same training. `reference` defines the result.

A new engine is a module or a folder beside these and a line below. No torch in here: an engine
loads it, or the module that it names, when it first trains.
"""

from capacity.layer.engines.blocked import BLOCKED
from capacity.layer.engines.fused import FUSED
from capacity.layer.engines.reference import REFERENCE
from capacity.layer.engines.registry import register_engine
from capacity.layer.engines.tape import TAPE
from capacity.layer.engines.triton import TRITON

for _engine in (REFERENCE, FUSED, BLOCKED, TAPE, TRITON):
    register_engine(_engine)
