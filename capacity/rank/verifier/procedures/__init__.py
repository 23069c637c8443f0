"""Decision procedures that the checkers call, each with its proof."""
