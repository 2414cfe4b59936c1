"""A seeded world: virtual time, a network, people with devices, and the servers they talk to."""
