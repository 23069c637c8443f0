"""Processes and clusters that do the tasks of a sweep, and how many threads each has."""
