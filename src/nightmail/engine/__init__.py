"""What makes the fold durable: a log, rows, a registry, and the one loop that drives them."""
