"""Random tensors, databases and layers of any rank."""
