"""Real engines for a cluster, as plain processes on loopback: Kafka, Cassandra, Redis, and SeaweedFS for S3."""
