"""Who is who: accounts, devices, messages, and which shard they live on.

An account's id follows from its handle and a device's id contains its account, so nobody
has to ask a directory where anything lives. Two handles may have the same hash: the second one
takes the id of the next probe, and an id stays for ever with its first handle.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

ACCOUNT_BITS = 49
DEVICE_BITS = 12
CLAIM_BITS = 61
"""Of the number under which a handle is claimed: no account waits for it, so it is longer than an account's id."""
DEVICES_EVER = (1 << DEVICE_BITS) - 1
"""Device numbers of one account are never reused; this is how many it can have over its life."""

SERVER = 0
"""The author of records that no device sent (time, forwards, operators)."""

MESSAGE_ID_CHARS = 64

MESSAGE_ID = re.compile(r"([0-9a-f]{1,16}):([0-9]{1,15}):([0-9]{1,12}):([0-9a-z]{1,16})\Z")
"""Matches nothing longer than MESSAGE_ID_CHARS."""


PROBES = 8
"""How many ids a handle may have. An attacker must find as many second preimages to keep a handle from being had."""


def account_id(handle: str, probe: int = 0) -> int:
    """The id that a handle has if those of all lower probes belong to other handles."""
    salt = probe.to_bytes(hashlib.blake2b.SALT_SIZE, "little")
    digest = hashlib.blake2b(handle.encode(), digest_size=8, salt=salt, person=b"account").digest()
    return (int.from_bytes(digest, "big") >> (64 - ACCOUNT_BITS)) | 1


def account_ids(handle: str) -> tuple[int, ...]:
    """Every id that a handle may have, in the order in which they are tried."""
    return tuple(account_id(handle, probe) for probe in range(PROBES))


def device_id(account: int, index: int) -> int:
    """The `index`-th device of an account, counted from 1."""
    assert 1 <= index <= DEVICES_EVER, index
    return account << DEVICE_BITS | index


def account_of(device: int) -> int:
    return device >> DEVICE_BITS


def index_of(device: int) -> int:
    return device & DEVICES_EVER


def shard_of(account: int, shards: int) -> int:
    """Account ids are hashes, so the remainder spreads them evenly (the lowest bit is always set)."""
    return (account >> 1) % shards


class MessageId(NamedTuple):
    """A message id taken apart. Sorts by time, then by the device's own count."""

    at_ms: int
    sequence: int
    device: int
    random: str

    @classmethod
    def parse(cls, text: str) -> MessageId:
        if not (match := MESSAGE_ID.match(text)):
            raise ValueError("not a message id: want device:milliseconds:sequence:random")
        device, at_ms, sequence, random = match.groups()
        return cls(int(at_ms), int(sequence), int(device, 16), random)

    def __str__(self) -> str:
        return f"{self.device:x}:{self.at_ms}:{self.sequence:05d}:{self.random}"


def log_of(group: int) -> int:
    """The device number under which a group's log is kept. No device has the index 0."""
    return group << DEVICE_BITS
