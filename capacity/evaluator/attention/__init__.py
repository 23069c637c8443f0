"""Attention of a layer's heads over a database: at its pairs, and as a tensor with a rank."""
