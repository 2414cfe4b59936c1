"""The name of a blob: whose it is, and a secret that the server has drawn.

    {account, 13 hex digits}-{secret, 32 hex digits}

Any node that has the name finds the shard. A name from outside is parsed to numbers and written again: nothing that
a peer wrote becomes a part of a path.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .ids import ACCOUNT_BITS

SECRET_BYTES = 16
KEY_BITS = 62
"""Of the secret, as the second number of a row's key: stores hold numbers of 63 bits."""

BLOB_ID = re.compile(r"([01][0-9a-f]{12})-([0-9a-f]{32})\Z")


class BlobId(NamedTuple):
    owner: int
    secret: bytes

    @classmethod
    def parse(cls, text: str) -> BlobId:
        """Raises ValueError for anything but the one spelling of a name."""
        if not (match := BLOB_ID.match(text)):
            raise ValueError("not the name of a blob")
        return cls(int(match[1], 16), bytes.fromhex(match[2]))

    def __str__(self) -> str:
        return f"{self.owner:013x}-{self.secret.hex()}"

    @property
    def key(self) -> int:
        """Its number among its owner's blobs."""
        return int.from_bytes(self.secret, "big") >> (8 * SECRET_BYTES - KEY_BITS)


assert ACCOUNT_BITS == 49, "the first digit of an account's thirteen is 0 or 1"
