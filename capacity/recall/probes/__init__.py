"""Published probes of knowledge as facts and templates."""
