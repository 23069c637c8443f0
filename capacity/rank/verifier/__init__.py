"""What has to be believed for a certified bound to be true."""
