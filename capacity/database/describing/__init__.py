"""Descriptions of facts: a row a predicate, what repeats, advice, and the VoID vocabulary."""
