"""The decision procedures that checkers call, each with its proof."""
