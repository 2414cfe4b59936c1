"""The tables of a cluster, each with why it is like that.

Knows:   every table, and the version of them all.
Touches: nothing: `nightmail cluster init` says these words to Cassandra.

What is removed leaves the disk by compaction: after an hour a removal may be forgotten, too, because whatever a late
write brings back is never read (sim/faults/wide_store.py, `resurrects`).
"""

from __future__ import annotations

SCHEMA_VERSION = 1
FORGETS = "gc_grace_seconds = 3600"
TIDIES = (
    "compaction = {'class': 'LeveledCompactionStrategy', 'tombstone_compaction_interval': '3600', "
    "'tombstone_threshold': '0.1', 'unchecked_tombstone_compaction': 'true'}"
)

TABLES = (
    # A version of a row. One bucket has some dozens of rows: a checkpoint writes those of one bucket together, and a
    # read meets few removals. Its timestamp is the version.
    f"""CREATE TABLE IF NOT EXISTS row (
        shard int, bucket int, kind smallint, a bigint, b bigint, version bigint, value blob,
        PRIMARY KEY ((shard, bucket), kind, a, b, version)
    ) WITH CLUSTERING ORDER BY (kind ASC, a ASC, b ASC, version DESC) AND {FORGETS} AND {TIDIES}""",
    # What waits in a mailbox: a queue is a device and a lane. Written with timestamp 1, removed with 2.
    f"""CREATE TABLE IF NOT EXISTS inbox (
        shard int, queue bigint, seq bigint, entry blob, PRIMARY KEY ((shard, queue), seq)
    ) WITH {FORGETS} AND {TIDIES}""",
    # What one shard told another and is not yet in its log.
    f"""CREATE TABLE IF NOT EXISTS forward (
        shard int, destination int, k bigint, record blob, PRIMARY KEY ((shard, destination), k)
    ) WITH {FORGETS} AND {TIDIES}""",
    # The delivery log: a block per checkpoint. It ends by its time to live.
    f"""CREATE TABLE IF NOT EXISTS delivery_log (
        shard int, day int, upto bigint, at bigint, block blob, PRIMARY KEY ((shard, day), upto)
    ) WITH CLUSTERING ORDER BY (upto DESC) AND {FORGETS}""",
    f"""CREATE TABLE IF NOT EXISTS delivery_day (
        shard int, day int, PRIMARY KEY (shard, day)
    ) WITH CLUSTERING ORDER BY (day DESC) AND {FORGETS}""",
    # Up to where a shard's rows are whole. Its timestamp is itself, so the greatest stands; a read repairs before it
    # answers, so that no later one sees less.
    """CREATE TABLE IF NOT EXISTS checkpoint (shard int PRIMARY KEY, upto bigint) WITH read_repair = 'BLOCKING'""",
    # The nodes that serve, each for as long as it says so; and the number that each has for itself.
    f"""CREATE TABLE IF NOT EXISTS node (
        cluster int, name text, number int, address text, fold int, started bigint, url text,
        PRIMARY KEY (cluster, name)
    ) WITH {FORGETS}""",
    f"CREATE TABLE IF NOT EXISTS node_number (number int PRIMARY KEY, life text) WITH {FORGETS}",
    # What was decided once: shards, buckets, the version of this schema, and the cluster's name.
    "CREATE TABLE IF NOT EXISTS decided (name text PRIMARY KEY, value bigint)",
)
