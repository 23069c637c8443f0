"""Random arguments and certificates: valid by construction, or edited until they prove nothing."""
