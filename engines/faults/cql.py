"""Cassandra's own protocol (version 4), as far as it takes to refuse writes and to compare what two owners wrote.

Knows:   frames, prepared statements, and the bytes that were written under each key and version.
Never:   changes what passes, unless writes are refused: then Cassandra seems to be overloaded.

A row's version, an entry's number and a forward's number determine the bytes (law L4): a zombie that writes others
under the same key would show here, and nowhere else, because the last write simply stands.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from .relays import Filter

HEADER = struct.Struct(">BBhBi")
ERROR, RESULT, PREPARE, EXECUTE, BATCH = 0x00, 0x08, 0x09, 0x0A, 0x0D
PREPARED, OVERLOADED = 4, 0x1001
WITH_VALUES = 0x01
RESPONSE = 0x80
VALUE_AT = {"INSERT INTO row ": 6, "INSERT INTO inbox ": 3, "INSERT INTO forward ": 3}
"""Where the value stands among what is bound; what stands before it is the key."""
NOTES = 10


class Frames:
    """Cuts a stream into frames."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        data = self._rest + data
        while len(data) >= HEADER.size:
            size = HEADER.size + HEADER.unpack_from(data)[4]
            if len(data) < size:
                break
            yield data[:size]
            data = data[size:]
        self._rest = data


class CqlWatch:
    """Over all connections of all nodes."""

    def __init__(self) -> None:
        self.refusing = False
        self.refused = 0
        self.compared = 0
        """Writes of a key that had been written before."""
        self.different = 0
        """Of these, with other bytes."""
        self.notes: list[str] = []
        self._statements: dict[bytes, str] = {}
        """Prepared id → words. Ids are digests: the same on every connection."""
        self._written: dict[tuple[str, bytes], tuple[int, str]] = {}
        """(Table, key) → a digest of the value, and who wrote it first."""

    def filters(self, node: str) -> tuple[Filter, Filter]:
        """For one connection: what the node says, and what Cassandra answers."""
        asked, answered = Frames(), Frames()
        preparing: dict[int, str] = {}

        def up(data: bytes) -> tuple[bytes, bytes]:
            onward: list[bytes] = []
            back: list[bytes] = []
            for frame in asked.feed(data):
                _, _, stream, opcode, _ = HEADER.unpack_from(frame)
                if opcode == PREPARE:
                    preparing[stream] = _long_string(frame, HEADER.size)
                if self.refusing and self._is_write(frame, opcode):
                    self.refused += 1
                    back.append(_refusal(stream))
                    continue
                self._compare(node, frame, opcode)
                onward.append(frame)
            return b"".join(onward), b"".join(back)

        def down(data: bytes) -> tuple[bytes, bytes]:
            frames = list(answered.feed(data))
            for frame in frames:
                _, _, stream, opcode, size = HEADER.unpack_from(frame)
                words = preparing.pop(stream, None)
                if words and opcode == RESULT and size > 4 and _int(frame, HEADER.size) == PREPARED:
                    self._statements[_short_bytes(frame, HEADER.size + 4)[0]] = words
            return b"".join(frames), b""

        return up, down

    def _is_write(self, frame: bytes, opcode: int) -> bool:
        if opcode == EXECUTE:
            return not self._words(_short_bytes(frame, HEADER.size)[0]).startswith("SELECT")
        return opcode == BATCH

    def _words(self, prepared: bytes) -> str:
        return self._statements.get(prepared, "")

    def _compare(self, node: str, frame: bytes, opcode: int) -> None:
        for prepared, values in _bound(frame, opcode):
            words = self._words(prepared)
            for begin, at in VALUE_AT.items():
                if words.startswith(begin):
                    self._note(node, begin.split()[-1], b"".join(values[:at]), values[at])

    def _note(self, node: str, table: str, key: bytes, value: bytes) -> None:
        digest, first = self._written.setdefault((table, key), (hash(value), node))
        if first != node or digest != hash(value):
            self.compared += 1
        if digest != hash(value):
            self.different += 1
            if len(self.notes) < NOTES:
                self.notes.append(f"{table} {key.hex()}: {node} wrote other bytes than {first}")


def _bound(frame: bytes, opcode: int) -> Iterator[tuple[bytes, list[bytes]]]:
    """(Prepared id, bound values) of each statement in a frame."""
    at = HEADER.size
    if opcode == EXECUTE:
        prepared, at = _short_bytes(frame, at)
        if frame[at + 2] & WITH_VALUES:
            yield prepared, _values(frame, at + 3)[0]
    elif opcode == BATCH:
        count, at = _short(frame, at + 1), at + 3
        for _ in range(count):
            if frame[at] != 1:
                return  # Words, not a prepared statement: nodes say none.
            prepared, at = _short_bytes(frame, at + 1)
            values, at = _values(frame, at)
            yield prepared, values


def _values(frame: bytes, at: int) -> tuple[list[bytes], int]:
    count, at = _short(frame, at), at + 2
    values: list[bytes] = []
    for _ in range(count):
        size, at = _int(frame, at), at + 4
        values.append(frame[at : at + size] if size > 0 else b"")
        at += max(0, size)
    return values, at


def _short(frame: bytes, at: int) -> int:
    return int.from_bytes(frame[at : at + 2])


def _int(frame: bytes, at: int) -> int:
    return int.from_bytes(frame[at : at + 4], signed=True)


def _short_bytes(frame: bytes, at: int) -> tuple[bytes, int]:
    end = at + 2 + _short(frame, at)
    return frame[at + 2 : end], end


def _long_string(frame: bytes, at: int) -> str:
    return frame[at + 4 : at + 4 + _int(frame, at)].decode()


def _refusal(stream: int) -> bytes:
    why = b"writes are refused"
    body = struct.pack(">iH", OVERLOADED, len(why)) + why
    return HEADER.pack(RESPONSE | 4, 0, stream, ERROR, len(body)) + body
