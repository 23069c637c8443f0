"""The search for certified intervals: which method looks at what, and what is kept."""
