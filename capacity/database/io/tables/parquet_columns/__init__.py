"""Columns of Parquet files: which of them are facts, and their texts whatever their encoding."""
