"""N-Triples and N-Quads as streams of lines that are too large for memory."""
