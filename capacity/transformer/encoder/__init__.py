"""A small encoder that is trained here: model, vocabulary, training."""
