"""Facts as queries and answers, and the relations that symmetric scores can't rank."""
