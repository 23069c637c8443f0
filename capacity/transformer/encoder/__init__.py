"""A small encoder classifier: model, vocabulary, training."""
