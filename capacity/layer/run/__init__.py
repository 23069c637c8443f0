"""Facts about one training, for engines and callers: its recipe, starts, history and snapshots.

Engines import this room, and `training` imports engines.
"""
