"""Upper bounds composed of those of parts: of ideals, Kronecker factors, and blocks of slices."""
