"""A part of the facts: criteria, and the terms that they name."""
