"""Tables that are too large for memory: files, and tables and views of DuckDB files."""
