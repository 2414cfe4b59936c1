"""What each engine is started with: its command, its files, its ports.

Knows:   the settings under which one small engine of each kind serves a test; why, where one differs from the default.
Never:   starts anything, or opens a port.
"""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

from msgspec import Struct

from .jars import class_path

HOST = "127.0.0.1"
KINDS = ("kafka", "cassandra", "redis", "s3")
PORTS = {"s3": 10}
"""How many ports a kind is given; others: 2."""
S3_BUCKET, S3_KEY_ID, S3_SECRET_KEY = "nightmail", "nightmail", "only-on-loopback"


class Plan(Struct, frozen=True):
    """One engine, as it is started now and after a kill."""

    kind: str
    port: int
    command: list[str]
    files: dict[str, str]
    """Path → text, written before each start."""
    birth: list[str] = []
    """A command that makes a new data folder; none: the engine does so itself."""


JAVA = ["java", "-Xms64m", "-Xss512k", "-XX:-UsePerfData", "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError",
        "-XX:TieredStopAtLevel=1"]  # fmt: skip
"""The optimizing compiler would cost more than it saves in the first minutes."""

CASSANDRA_OPENS = (
    "java.base/java.io", "java.base/java.lang", "java.base/java.lang.module", "java.base/java.lang.ref",
    "java.base/java.lang.reflect", "java.base/java.nio", "java.base/java.util", "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math", "java.base/jdk.internal.misc", "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref", "java.base/jdk.internal.reflect", "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch", "java.management.rmi/com.sun.jmx.remote.internal.rmi", "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server", "jdk.attach/sun.tools.attach", "jdk.compiler/com.sun.tools.javac",
    "jdk.compiler/com.sun.tools.javac.file", "jdk.management/com.sun.management.internal", "jdk.unsupported/sun.misc",
)  # fmt: skip
CASSANDRA_JAVA = [
    "-Xmx384m", *(f"--add-opens={package}=ALL-UNNAMED" for package in CASSANDRA_OPENS),
    "-Djdk.attach.allowAttachSelf=true", "-Dio.netty.tryReflectionSetAccessible=true",
    "-Djava.net.preferIPv4Stack=true",
    "-Dcassandra-foreground=yes",  # else it closes its output after the start
    "-Dcassandra.memtable.row_overhead_size=180",  # else it measures this for 3 s
    "-Dcassandra.skip_wait_for_gossip_to_settle=0", "-Dcassandra.available_processors=1",
]  # fmt: skip
LOGBACK = """<configuration><appender name="S" class="ch.qos.logback.core.ConsoleAppender"><encoder>
<pattern>%date %-5level %F:%L %msg%n</pattern></encoder></appender>
<root level="INFO"><appender-ref ref="S"/></root></configuration>"""


def kafka(home: Path, port: int, controller: int, seen_at: int = 0) -> Plan:
    """One broker that is its own controller. Groups notice a dead member within 2 s, not within 45.

    `seen_at`: the port of a relay before it, which it then names to its clients.
    """
    settings = {
        "process.roles": "broker,controller", "node.id": "1", "log.dirs": f"{home}/data",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{seen_at or port},CONTROLLER://{HOST}:{controller}",
        "controller.listener.names": "CONTROLLER", "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "controller.quorum.voters": f"1@{HOST}:{controller}", "auto.create.topics.enable": "false",
        "unclean.leader.election.enable": "false", "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "4", "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1", "group.initial.rebalance.delay.ms": "0",
        "group.consumer.min.heartbeat.interval.ms": "100", "group.consumer.heartbeat.interval.ms": "500",
        "group.consumer.min.session.timeout.ms": "1000", "group.consumer.session.timeout.ms": "2000",
        "group.consumer.assignment.interval.ms": "0", "log.cleaner.dedupe.buffer.size": "2097152",
        "log.index.size.max.bytes": "1048576", "num.network.threads": "2", "num.io.threads": "4",
    }  # fmt: skip
    file, run = f"{home}/server.properties", [*JAVA, "-Xmx256m", "-cp", class_path("kafka")]
    cluster = base64.urlsafe_b64encode(b"\0" + os.urandom(15)).decode().rstrip("=")
    return Plan(
        "kafka", port,
        [*run[:-2], "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", *run[-2:], "kafka.Kafka", file],
        {file: "\n".join(f"{key}={value}" for key, value in settings.items())},
        [*run, "kafka.tools.StorageTool", "format", "--cluster-id", cluster, "--config", file],
    )  # fmt: skip


def cassandra(home: Path, port: int, storage: int) -> Plan:
    """One node. What it acknowledged survives a kill; by default ten seconds of it would not. Batches may be as large
    as a checkpoint's: the default warns of each above 5 KiB."""
    provider = "org.apache.cassandra.locator.SimpleSeedProvider"
    seeds = f'[{{"class_name": "{provider}", "parameters": [{{"seeds": "{HOST}:{storage}"}}]}}]'
    settings = {
        "cluster_name": "nightmail", "endpoint_snitch": "SimpleSnitch", "num_tokens": "1", "initial_token": '"0"',
        "partitioner": "org.apache.cassandra.dht.Murmur3Partitioner", "auto_bootstrap": "false",
        "listen_address": HOST, "storage_port": str(storage), "rpc_address": HOST, "native_transport_port": str(port),
        "seed_provider": seeds, "commitlog_sync": "group", "commitlog_sync_group_window": "5ms",
        "commitlog_segment_size": "8MiB", "auto_snapshot": "false", "memtable_heap_space": "64MiB",
        "memtable_offheap_space": "32MiB", "file_cache_size": "32MiB", "key_cache_size": "4MiB",
        "concurrent_reads": "8", "concurrent_writes": "64", "batch_size_warn_threshold": "1MiB",
        "batch_size_fail_threshold": "4MiB",
    }  # fmt: skip
    yaml, logback = f"{home}/cassandra.yaml", f"{home}/logback.xml"
    return Plan(
        "cassandra", port,
        [*JAVA, *CASSANDRA_JAVA, f"-Dcassandra.config=file:{yaml}", f"-Dcassandra.storagedir={home}/data",
         f"-Dlogback.configurationFile={logback}", "-cp", class_path("cassandra"),
         "org.apache.cassandra.service.CassandraDaemon"],
        {yaml: "\n".join(f"{key}: {value}" for key, value in settings.items()), logback: LOGBACK},
    )  # fmt: skip


def redis(_home: Path, port: int, _other: int) -> Plan:
    """Nothing on the disk: what it holds may be lost at any time."""
    return Plan(
        "redis", port, ["redis-server", "--bind", HOST, "--port", str(port), "--save", "", "--appendonly", "no"], {}
    )


def s3(home: Path, port: int, *others: int) -> Plan:
    """SeaweedFS: all of its servers in one process. Anybody may list the bucket, so that readiness can be asked."""
    names = ("s3.port.grpc", "filer.port", "filer.port.grpc", "master.port", "master.port.grpc", "volume.port",
             "volume.port.grpc", "admin.port", "admin.port.grpc")  # fmt: skip
    options = {
        "dir": f"{home}/data", "ip": HOST, "ip.bind": HOST, "s3.port": port, **dict(zip(names, others, strict=True)),
        "s3.port.iceberg": 0, "s3.port.lance": 0, "webdav": "false", "admin.ui": "false", "master.telemetry": "false",
        "s3.autoCreateBucket": "false", "s3.config": f"{home}/s3.json", "bucket": S3_BUCKET,
        "filer.localSocket": f"{home}/filer.sock",
    }  # fmt: skip
    keys = {"accessKey": S3_KEY_ID, "secretKey": S3_SECRET_KEY}
    identities = [
        {"name": S3_KEY_ID, "credentials": [keys], "actions": ["Admin", "Read", "Write", "List", "Tagging"]},
        {"name": "anonymous", "actions": [f"List:{S3_BUCKET}"]},
    ]
    return Plan(
        "s3", port, ["weed", "mini", *(f"-{name}={value}" for name, value in options.items())],
        {f"{home}/s3.json": json.dumps({"identities": identities})}, ["mkdir", f"{home}/data"],
    )  # fmt: skip


PLANS = {"kafka": kafka, "cassandra": cassandra, "redis": redis, "s3": s3}
