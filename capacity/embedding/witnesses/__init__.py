"""Models with integer factors: their search by training, and their scores by definition."""
