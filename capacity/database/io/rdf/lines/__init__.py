"""N-Triples and N-Quads by columns: lines, their patterns, and compiled code for plain ones."""
