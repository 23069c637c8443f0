"""The search for certified intervals: ledgers of the best bounds, and the order of methods."""
