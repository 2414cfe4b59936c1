"""What passes between a node and Cassandra, as bytes of the protocol."""

from __future__ import annotations

import struct

from engines.faults.cql import CqlWatch

WRITE_ROW = "INSERT INTO row (shard, bucket, kind, a, b, version, value) VALUES (?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ?"
READ = "SELECT upto FROM checkpoint WHERE shard=?"


def request(opcode: int, body: bytes, stream: int = 1) -> bytes:
    return struct.pack(">BBhBi", 4, 0, stream, opcode, len(body)) + body


def prepared(watch: CqlWatch, words: str, ident: bytes) -> None:
    up, down = watch.filters("node1")
    asked = request(9, struct.pack(">i", len(words)) + words.encode())
    answer = struct.pack(">BBhBi", 0x84, 0, 1, 8, 6 + len(ident)) + struct.pack(">iH", 4, len(ident)) + ident
    assert (up(asked), down(answer)) == ((asked, b""), (answer, b""))


def bound(*values: bytes) -> bytes:
    return struct.pack(">H", len(values)) + b"".join(struct.pack(">i", len(value)) + value for value in values)


def executed(ident: bytes, *values: bytes) -> bytes:
    return request(10, struct.pack(">H", len(ident)) + ident + struct.pack(">HB", 4, 1) + bound(*values))


def batch(ident: bytes, *rows: tuple[bytes, ...]) -> bytes:
    said = b"".join(b"\1" + struct.pack(">H", len(ident)) + ident + bound(*values) for values in rows)
    return request(13, struct.pack(">BH", 1, len(rows)) + said + struct.pack(">HB", 4, 0))


def row(version: int, value: bytes) -> tuple[bytes, ...]:
    number = version.to_bytes(8)
    return (b"\0\0\0\1", b"\0\0\0\2", b"\0\3", bytes(8), bytes(8), number, value, number)


def watching() -> CqlWatch:
    watch = CqlWatch()
    prepared(watch, WRITE_ROW, b"row")
    prepared(watch, READ, b"read")
    return watch


def test_two_nodes_that_write_other_bytes_under_one_version_are_found_however_the_bytes_are_cut() -> None:
    watch = watching()
    one, two = watch.filters("node1")[0], watch.filters("node2")[0]
    said = batch(b"row", row(1, b"same"), row(2, b"mine"))
    passed = b"".join(one(bytes((byte,)))[0] for byte in said)
    two(executed(b"row", *row(1, b"same")))
    assert (passed, watch.compared, watch.different) == (said, 1, 0)
    two(executed(b"row", *row(2, b"other")))
    assert (watch.compared, watch.different, len(watch.notes)) == (2, 1, 1)


def test_while_writes_are_refused_questions_pass_and_writes_are_answered_as_overload() -> None:
    watch = watching()
    up, _ = watch.filters("node1")
    watch.refusing = True
    question, write = executed(b"read", b"\0\0\0\1"), executed(b"row", *row(1, b"value"))
    assert up(question) == (question, b"")
    onward, back = up(write + batch(b"row", row(2, b"value")))
    _, _, stream, opcode, size = struct.unpack_from(">BBhBi", back)
    assert (onward, opcode, stream, struct.unpack_from(">i", back, 9), size * 2 + 18) == (
        b"", 0, 1, (0x1001,), len(back),
    )  # fmt: skip
    watch.refusing = False
    assert (up(write), watch.refused) == ((write, b""), 2)
