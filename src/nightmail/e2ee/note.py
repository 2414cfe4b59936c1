"""What is sealed for a device: a content, the nonce of its tag, and which message it is.

Spec:    our own, byte by byte in docs/e2ee.md. The tag is a commitment: SHA-256 over a nonce that only those who
         can open the message learn, so the server can compare tags and learns nothing from them.

    version u8 ‖ flags u8 ‖ nonce 16 ‖ stamp u64 ‖ id length u8 ‖ id ‖ content (as it is, or deflated)

Knows:   nothing of keys. `sealing.py` puts both together.
Never:   trusts what the server says: id, kind and tag are compared with what was sealed.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import NamedTuple

from nightmail.model.forms import TAG_BYTES
from nightmail.model.ids import MESSAGE_ID_CHARS, MessageId, account_of
from nightmail.model.rows import Entry
from nightmail.model.words import Kind

from .compression import deflate, inflate
from .content import CONTENT_BYTES_MAX
from .errors import BadEncoding, NotAsAnnounced, UnknownVersion
from .padding import bucket, pad, unpad

VERSION = 1
DEFLATED = 1
NONCE_BYTES = 16
DEFLATE_BYTES_MIN = 256
"""A shorter text would save a step or two of padding at most, and cost a third more."""
_HEAD = struct.Struct(">BB16sQB")


class Note(NamedTuple):
    nonce: bytes
    """Made with the tag, once, when the message is composed."""
    id: str
    """The person's message: for a re-seal the original id, not that of its transport."""
    content: bytes
    """As `content.py` encodes it."""
    stamp: int = 0
    """For a re-seal: when the server took the original, so that it keeps its place in the conversation."""

    def __repr__(self) -> str:
        return f"<Note {self.id}: {len(self.content)} bytes>"


def tag_of(nonce: bytes, content: bytes, conversation: str) -> bytes:
    """Tells a retry from another content. Every recipient computes it again: one id, one content."""
    assert len(nonce) == NONCE_BYTES
    return hashlib.sha256(nonce + content + conversation.encode()).digest()[:TAG_BYTES]


def pack(note: Note) -> bytes:
    """The plaintext to seal: compressed if that is safe and helps, then padded."""
    ident = note.id.encode("ascii")
    assert len(note.nonce) == NONCE_BYTES, "the nonce of the tag"
    assert 0 < len(ident) <= MESSAGE_ID_CHARS, "a message id"
    assert 2 <= len(note.content) <= CONTENT_BYTES_MAX, "a content is checked before it gets here"
    body, flags = note.content, 0
    if body[1] == Kind.TEXT and len(body) >= DEFLATE_BYTES_MIN:
        small = deflate(body)
        head = _HEAD.size + len(ident)
        if bucket(head + len(small)) < bucket(head + len(body)):
            body, flags = small, DEFLATED
    return pad(_HEAD.pack(VERSION, flags, note.nonce, note.stamp, len(ident)) + ident + body)


def padded_bytes_max(content: bytes) -> int:
    """The longest plaintext that a note with this content can have, the cipher's padding included."""
    body_bytes = len(content)
    if content[1] == Kind.TEXT and body_bytes >= DEFLATE_BYTES_MIN:
        body_bytes = min(body_bytes, len(deflate(content)))
    return bucket(_HEAD.size + MESSAGE_ID_CHARS + body_bytes)


def unpack(plaintext: bytes) -> Note:
    data = unpad(plaintext)
    if len(data) < _HEAD.size:
        raise BadEncoding("note", f"{len(data)} bytes")
    version, flags, nonce, stamp, length = _HEAD.unpack_from(data)
    if version != VERSION:
        raise UnknownVersion("note", version)
    ident, body = data[_HEAD.size : _HEAD.size + length], data[_HEAD.size + length :]
    if flags & ~DEFLATED or len(ident) != length or not ident.isascii():
        raise BadEncoding("note", "its head is not of its form")
    content = inflate(body, CONTENT_BYTES_MAX) if flags & DEFLATED else body
    if not 2 <= len(content) <= CONTENT_BYTES_MAX:
        raise BadEncoding("note", f"{len(content)} bytes of content")
    return Note(nonce, ident.decode("ascii"), content, stamp)


def check(note: Note, entry: Entry, conversation: str) -> None:
    """Raises unless the tag, the id, the kind and the author are those that the server says."""
    if not hmac.compare_digest(tag_of(note.nonce, note.content, conversation), entry.tag):
        raise NotAsAnnounced("content tag")
    if note.id != (entry.of or entry.id):
        raise NotAsAnnounced("message id")
    if note.content[1] != entry.kind:
        raise NotAsAnnounced("kind")
    try:
        author = MessageId.parse(note.id).device
    except ValueError:
        raise BadEncoding("note", "its id is not a message id") from None
    if account_of(author) != account_of(entry.by):
        raise NotAsAnnounced("author")
