"""The rows of a cluster on Cassandra: versions in small buckets, one pointer per shard, and the nodes that serve."""
