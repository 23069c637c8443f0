"""Large plain tables by columns: compiled code that scans them, and their cells."""
