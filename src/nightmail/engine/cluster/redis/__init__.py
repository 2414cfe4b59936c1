"""What nodes share and can rebuild, on Redis: who is connected where, and who wakes whom."""
