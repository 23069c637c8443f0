"""Pages of Parquet files, and the columns of texts that are made of them."""
