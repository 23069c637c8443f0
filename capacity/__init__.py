"""How many facts an attention layer can hold, and how big a database of facts is."""
