"""The folder of a sweep: its files, the columns of its rows, and the locks of its parts."""
