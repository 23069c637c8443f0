"""The installation of this library: versions, extras, devices, compiled code, and clashes.

It is looked at without importing what takes long, and whatever is missing or broken.
"""
