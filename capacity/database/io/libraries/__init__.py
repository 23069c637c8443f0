"""Facts from other libraries' objects, and back."""
