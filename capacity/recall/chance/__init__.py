"""What is known beside chance: random parts of a database, and measures of their regularity."""
