"""Real engines for a cluster, as plain processes on loopback: Kafka, Cassandra and Redis, without containers."""
