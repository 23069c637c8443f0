"""The grammar of a sweep's TOML file: how it is read and checked, and what it asks for."""
