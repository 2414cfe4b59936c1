"""Whether an engine serves: each is asked in its own protocol.

Knows:   the first words of Kafka, of Cassandra, of Redis and of S3.
Never:   takes an open port for a ready engine.
"""

from __future__ import annotations

import socket
import struct

from .plans import HOST, S3_BUCKET

KAFKA_METADATA = struct.pack(">hhih", 3, 1, 1, 1) + b"e" + struct.pack(">i", 0)
"""Metadata, version 1, of no topic: answered with the brokers that serve."""
CQL = b"SELECT release_version FROM system.local"


def is_ready(kind: str, port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=10) as link:
            return ASKED[kind](link)
    except (OSError, struct.error):
        return False


def _redis(link: socket.socket) -> bool:
    link.sendall(b"PING\r\n")
    return link.recv(16).startswith(b"+PONG")


def _kafka(link: socket.socket) -> bool:
    link.sendall(struct.pack(">i", len(KAFKA_METADATA)) + KAFKA_METADATA)
    _size, _correlation, brokers = struct.unpack(">iii", link.recv(12, socket.MSG_WAITALL))
    return brokers == 1


def _cassandra(link: socket.socket) -> bool:
    startup = b"\0\1\0\x0bCQL_VERSION\0\x053.0.0"
    query = struct.pack(">i", len(CQL)) + CQL + struct.pack(">hb", 1, 0)
    answer = 0
    for opcode, body in ((1, startup), (7, query)):
        link.sendall(struct.pack(">BBhBi", 4, 0, 0, opcode, len(body)) + body)
        *_, answer, size = struct.unpack(">BBhBi", link.recv(9, socket.MSG_WAITALL))
        link.recv(size, socket.MSG_WAITALL)
    return answer == 8


def _s3(link: socket.socket) -> bool:
    link.sendall(f"GET /{S3_BUCKET}?list-type=2 HTTP/1.0\r\nHost: {HOST}\r\n\r\n".encode())
    return link.recv(12, socket.MSG_WAITALL).endswith(b" 200")


ASKED = {"kafka": _kafka, "cassandra": _cassandra, "redis": _redis, "s3": _s3}
