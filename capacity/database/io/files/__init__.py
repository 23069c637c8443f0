"""Files, whatever their format: bytes, formats, parsers, several files as one."""
