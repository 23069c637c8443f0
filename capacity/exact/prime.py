"""The prime modulo which the search compares ranks."""

# sums of products of two residues fit 64 bits
PRIME = 2**31 - 1
