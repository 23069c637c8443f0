"""Counts on a Dask cluster, where the data are."""
