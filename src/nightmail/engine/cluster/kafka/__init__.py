"""The shared log on Kafka: a partition for each shard, a message for each append; and who owns a shard, by a group."""
