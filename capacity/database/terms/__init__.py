"""Terms: one at a time and by the column, their order, labels and prefixes."""
