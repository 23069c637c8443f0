"""Parts of one layer: its circuits, its attention to pairs, and the terms of its logits."""
