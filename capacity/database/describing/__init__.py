"""Descriptions of facts: one row per predicate, what repeats, advice, and the VoID vocabulary."""
