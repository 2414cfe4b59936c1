"""A node of a cluster: the same doors as a node alone, over owners, links and shared engines."""
