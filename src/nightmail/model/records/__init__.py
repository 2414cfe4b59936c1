"""What can happen, by topic. A class says everything about its record; `record.py` puts them together."""

from .accounts import Blocked, Closed, PinSet, ReceiptsSet, Registered
from .body import Author, Body, Pace
from .deadletters import LetterExpired
from .devices import Linked, Listed, Relabelled, Unlinked
from .forwards import Forwarded, Told
from .keys import Claimed, Published
from .mailboxes import Acked, Expired, Watched
from .messages import Copied, Envelope, Sent, Voided
from .receipts import ChangesAcked, Read, Receipted, Span
from .record import AnyBody, BadRecord, Record, SaidByDevices, decode_record, encode_record
from .shard import FoldRaised, LimitsSet, Ticked

__all__ = [
    "Acked",
    "AnyBody",
    "Author",
    "BadRecord",
    "Blocked",
    "Body",
    "ChangesAcked",
    "Claimed",
    "Closed",
    "Copied",
    "Envelope",
    "Expired",
    "FoldRaised",
    "Forwarded",
    "LetterExpired",
    "LimitsSet",
    "Linked",
    "Listed",
    "Pace",
    "PinSet",
    "Published",
    "Read",
    "Receipted",
    "ReceiptsSet",
    "Record",
    "Registered",
    "Relabelled",
    "SaidByDevices",
    "Sent",
    "Span",
    "Ticked",
    "Told",
    "Unlinked",
    "Voided",
    "Watched",
    "decode_record",
    "encode_record",
]  # fmt: skip
