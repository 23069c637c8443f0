"""Pictures of a page, computed as places and colours that its templates draw."""
