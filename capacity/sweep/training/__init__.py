"""Runs: trained from their starts, scored, and written as rows."""
