"""The shared vectors of sealed streams and of backups. Long ones stand in the file by their digests."""

from __future__ import annotations

import hashlib

from nightmail.client.backup.newest import lineage_of
from nightmail.client.backup.server_parts import ID_BYTES, head_of_part
from nightmail.e2ee.content import Content, encode_content
from nightmail.e2ee.streams.backup import (
    BY_PASSPHRASE,
    SEGMENT_NONCE_BYTES,
    BackupSecret,
    first_link,
    new_code,
    next_link,
    segment_key,
    wrap,
)
from nightmail.e2ee.streams.media import MediaPointer, encode_pointer
from nightmail.e2ee.streams.padding import padded_size
from nightmail.e2ee.streams.stream import CHUNK_BYTES, StreamSealer
from nightmail.model.ids import account_id
from nightmail.model.words import Kind

from .vector_ends import Made, Named

SIZES = (0, 1, 1_022, 1_023, 1_024, 1_500, 65_534, 65_535, 65_536, 100_000, 10_000_000, 1 << 30, 1 << 40)
SHORT = 100


def make_streams() -> Made:
    contents = {
        "empty": b"",
        "a few words": b"hello, stream",
        "ends in what looks like padding": b"text\x80\0\0",
        "one chunk with its mark": _drawn("one chunk", CHUNK_BYTES - 1),
        "the mark stands in a chunk of its own": _drawn("two chunks", CHUNK_BYTES),
        "padding over several chunks": bytes(3_000_000),
    }
    return {
        "padded_sizes": [[str(size), str(padded_size(size))] for size in SIZES],
        "streams": [_stream(why, content) for why, content in contents.items()],
    }


def _stream(why: str, content: bytes) -> Made:
    sealer = StreamSealer(key := _drawn(f"key of {why}", 32))
    chunks = list(sealer.chunks([content]))
    is_short = len(content) <= SHORT
    return {
        "why": why, "key": key.hex(), "content_bytes": len(content),
        "content": content.hex() if is_short else None, "content_sha256": hashlib.sha256(content).hexdigest(),
        "head": sealer.head.hex(), "chunks": [chunk.data.hex() for chunk in chunks] if is_short else None,
        "chunk_sizes": [len(chunk.data) for chunk in chunks], "chunk_digests": [chunk.digest.hex() for chunk in chunks],
        "digest": sealer.digest.hex(),
    }  # fmt: skip


def make_media() -> Made:
    file = b"the bytes of a picture"
    return {
        "file": file.hex(),
        "media": [
            _media("plain", file, "notes.txt", "text/plain", b""),
            _media("with a thumbnail", file, "Grüße ✓.png", "image/png", _drawn("thumbnail", 40)),
        ],
    }


def _media(why: str, file: bytes, name: str, kind: str, thumbnail: bytes) -> Made:
    sealer = StreamSealer(key := _drawn(f"media {why}", 32))
    stream = sealer.head + b"".join(chunk.data for chunk in sealer.chunks([file]))
    owner, blob = account_id("ada"), _drawn(f"blob {why}", 16)
    pointer = MediaPointer(owner, blob, key, sealer.digest, len(file), name, kind, thumbnail)
    data = encode_pointer(pointer)
    return {
        "why": why, "owner": str(owner), "blob_id": pointer.blob_id, "key": key.hex(), "digest": sealer.digest.hex(),
        "size": pointer.size, "name": name, "type": kind, "thumbnail": thumbnail.hex(), "stream": stream.hex(),
        "pointer": data.hex(), "content": encode_content(Content(Kind.MEDIA, "look", data=data)).hex(),
    }  # fmt: skip


def make_backups() -> Made:
    chance = Named("backup", {})
    return {
        "backups": [
            _backup("a recovery code", new_code(chance), chance),
            _backup("a passphrase", BackupSecret(BY_PASSPHRASE, "correct horse café"), chance),
        ],
    }


def _backup(why: str, secret: BackupSecret, chance: Named) -> Made:
    """A head and two segments. The content is no real one: what is inside, docs/e2ee.md says."""
    wrapped = wrap(secret, chance)
    file, link = wrapped.head, first_link(wrapped.head)
    links, keys = [link], list[bytes]()
    for number, content in enumerate((b"first", b"second"), 1):
        nonce = chance.draw(SEGMENT_NONCE_BYTES)
        keys.append(segment_key(wrapped.key, link, number, nonce))
        sealer = StreamSealer(keys[-1])
        stream = sealer.head + b"".join(chunk.data for chunk in sealer.chunks([content]))
        file += len(stream).to_bytes(8, "big") + nonce + stream
        link = next_link(link, len(stream), nonce, sealer.digest)
        links.append(link)
    return {
        "opened_by": why, "secret": secret.text, "head": wrapped.head.hex(), "key": wrapped.key.hex(),
        "contents": ["first", "second"], "links": [each.hex() for each in links],
        "segment_keys": [each.hex() for each in keys], "file": file.hex(), "lineage": lineage_of(wrapped.head).hex(),
        "parts": _parts(file, chance),
    }  # fmt: skip


def _parts(file: bytes, chance: Named) -> Made:
    """The file on the server, in two parts."""
    backup, cut = chance.draw(ID_BYTES), len(file) - 100
    pairs = ((0, file[:cut]), (cut, file[cut:]))
    return {"id": backup.hex(), "blobs": [(head_of_part(backup, start) + data).hex() for start, data in pairs]}


def _drawn(name: str, count: int) -> bytes:
    return hashlib.shake_256(name.encode()).digest(count)
