"""Where a language model keeps facts: logits of answers by component, heads alone, and without."""
