"""The store as plain data, with a journal of what is not committed yet.

Knows:   for every uncommitted write, the value before it.
Touches: dicts. What is committed lasts as long as the object, through any number of crashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, cast

from nightmail.client.messages import Message, Position, Tick
from nightmail.model.ids import account_of
from nightmail.model.words import Kind, Lane

from .changes_port import Saved
from .memory_groups import MemoryGroups
from .memory_schedules import MemorySchedules
from .rows import (
    Contact,
    Conversation,
    Cursors,
    DeviceList,
    Early,
    Identity,
    MessageNumber,
    Missed,
    Outgoing,
    OwnKeys,
    ReadMark,
    Trusted,
)
from .search import spans_of, text_of

T = TypeVar("T")

_NOTHING: Any = object()


class MemoryStore(MemoryGroups, MemorySchedules):
    """A `Store`. `crash` is what a power cut does to it."""

    def __init__(self) -> None:
        self._tables: dict[str, dict[Any, Any]] = {}
        self._journal: list[tuple[dict[Any, Any], Any, Any]] = []
        self.commits = 0

    def _table(self, name: str) -> dict[Any, Any]:
        return self._tables.setdefault(name, {})

    def _put(self, name: str, key: Any, value: Any) -> None:
        table = self._table(name)
        self._journal.append((table, key, table.get(key, _NOTHING)))
        if value is _NOTHING:
            table.pop(key, None)
        else:
            table[key] = value

    def _drop(self, name: str, key: Any) -> None:
        self._put(name, key, _NOTHING)

    def _get(self, name: str, key: Any, default: T) -> T:
        return cast("T", self._table(name).get(key, default))

    # --- the transaction ------------------------------------------------------------------------

    @property
    def dirty(self) -> bool:
        return bool(self._journal)

    def commit(self) -> None:
        self.commits += bool(self._journal)
        self._journal.clear()

    def rollback(self) -> None:
        for table, key, before in reversed(self._journal):
            if before is _NOTHING:
                table.pop(key, None)
            else:
                table[key] = before
        self._journal.clear()

    crash = rollback

    def close(self) -> None:
        self.rollback()

    # --- this device ----------------------------------------------------------------------------

    def identity(self) -> Identity | None:
        return self._get("meta", "identity", None)

    def put_identity(self, identity: Identity) -> None:
        self._put("meta", "identity", identity)

    def cursors(self) -> Cursors:
        return self._get("meta", "cursors", Cursors())

    def put_cursors(self, cursors: Cursors) -> None:
        self._put("meta", "cursors", cursors)

    def next_sequence(self) -> int:
        sequence = self._get("meta", "sequence", 0) + 1
        self._put("meta", "sequence", sequence)
        return sequence

    # --- sending --------------------------------------------------------------------------------

    def last_number(self, to: int, lane: Lane) -> int:
        return self._get("stream", (to, lane), 0)

    def put_last_number(self, to: int, lane: Lane, n: int) -> None:
        self._put("stream", (to, lane), n)

    def outgoing(self) -> list[Outgoing]:
        table = cast("dict[tuple[int, Lane, int], Outgoing]", self._table("outgoing"))
        return [table[key] for key in sorted(table)]

    def put_outgoing(self, row: Outgoing) -> None:
        self._put("outgoing", (row.to, row.lane, row.n), row)

    def drop_outgoing(self, to: int, lane: Lane, n: int) -> None:
        self._put("outgoing", (to, lane, n), _NOTHING)

    # --- messages -------------------------------------------------------------------------------

    def message(self, message_id: str) -> Message | None:
        return self._get("message", message_id, None)

    def put_message(self, message: Message) -> None:
        self._put("message", message.id, message)
        self._put("words", message.id, text_of(message) or _NOTHING)
        self._put("deadline", message.id, message.deadline or _NOTHING)
        if message.kind is Kind.CONTROL:
            self._put(f"change {message.peer}", message.id, message)
        if not message.life_ms:
            self._changed(Saved.MESSAGE, message.id)

    def drop_message(self, message_id: str) -> None:
        if (message := self.message(message_id)) is not None and message.kind is Kind.CONTROL:
            self._put(f"change {message.peer}", message_id, _NOTHING)
        self._unchanged(Saved.MESSAGE, message_id)
        self._put("message", message_id, _NOTHING)
        self._put("words", message_id, _NOTHING)
        self._put("deadline", message_id, _NOTHING)

    def ended(self, by: int) -> list[Message]:
        table = cast("dict[str, int]", self._table("deadline"))
        found = sorted((deadline, ident) for ident, deadline in table.items() if deadline <= by)
        return [message for _, ident in found if (message := self.message(ident)) is not None]

    def next_deadline(self) -> int | None:
        return min(self._table("deadline").values(), default=None)

    def timer_change(self, peer: int) -> Message | None:
        table = cast("dict[str, Message]", self._table(f"change {peer}"))
        standing = [message for message in table.values() if message.state is not Tick.FAILED]
        return max(standing, key=lambda message: message.position, default=None)

    def search(self, terms: Sequence[str], peer: int | None, limit: int) -> list[Message]:
        table = cast("dict[str, Message]", self._table("message"))
        words = cast("dict[str, str]", self._table("words"))
        found = [table[ident] for ident, text in words.items() if terms and spans_of(text, terms)]
        found = [message for message in found if peer in (None, message.peer)]
        return sorted(found, key=lambda message: message.position, reverse=True)[:limit]

    def history(self, peer: int, limit: int, before: Position | None = None) -> list[Message]:
        table = cast("dict[str, Message]", self._table("message"))
        found = [m for m in table.values() if m.peer == peer and (before is None or m.position < before)]
        found.sort(key=lambda message: message.position)
        return found[-limit:] if limit else []

    def messages_after(self, message_id: str, limit: int) -> list[Message]:
        table = cast("dict[str, Message]", self._table("message"))
        return [table[ident] for ident in sorted(ident for ident in table if ident > message_id)[:limit]]

    def past_messages(self) -> int:
        table = cast("dict[str, Message]", self._table("message"))
        return sum(message.is_past for message in table.values())

    def numbered(self, by: int, to: int, lane: Lane, low: int, high: int) -> list[MessageNumber]:
        table = cast("dict[int, MessageNumber]", self._table(f"numbered {by} {to} {lane:d}"))
        if high - low < len(table):
            return [table[n] for n in range(low, high + 1) if n in table]
        return [table[n] for n in sorted(table) if low <= n <= high]

    def put_numbered(self, row: MessageNumber) -> None:
        self._put(f"numbered {row.by} {row.to} {row.lane:d}", row.n, row)
        self._put("marked", (row.by, row.lane, row.n, row.to), row if row.mark else _NOTHING)
        self._changed(Saved.MESSAGE, row.id)

    def marked(self, mark: ReadMark, by_account: int | None = None) -> list[MessageNumber]:
        table = cast("dict[tuple[int, Lane, int, int], MessageNumber]", self._table("marked"))
        return [
            row
            for _, row in sorted(table.items())
            if row.mark == mark and by_account in (None, account_of(row.by))
        ]  # fmt: skip

    def conversation(self, peer: int) -> Conversation:
        return self._get("conversation", peer, Conversation(peer))

    def conversations(self) -> list[Conversation]:
        table = cast("dict[int, Conversation]", self._table("conversation"))
        return sorted(table.values(), key=lambda row: (-row.seen, row.peer))

    def put_conversation(self, row: Conversation) -> None:
        self._put("conversation", row.peer, row)
        self._changed(Saved.CONVERSATION, row.peer)

    def contact(self, account: int) -> Contact | None:
        return self._get("contact", account, None)

    def contacts(self) -> list[Contact]:
        table = cast("dict[int, Contact]", self._table("contact"))
        return [table[account] for account in sorted(table)]

    def put_contact(self, row: Contact) -> None:
        self._put("contact", row.account, row)
        self._changed(Saved.CONTACT, row.account)

    def drop_contact(self, account: int) -> None:
        self._put("contact", account, _NOTHING)
        self._changed(Saved.CONTACT, account)

    # --- receiving ------------------------------------------------------------------------------

    def unopened(self, lane: Lane) -> list[int]:
        return sorted(self._table(f"unopened {lane:d}"))

    def put_unopened(self, lane: Lane, seq: int) -> None:
        self._put(f"unopened {lane:d}", seq, True)

    def drop_unopened(self, lane: Lane, seqs: Iterable[int]) -> None:
        for seq in seqs:
            self._put(f"unopened {lane:d}", seq, _NOTHING)

    def early(self, by: int, to: int, lane: Lane) -> list[Early]:
        return list(cast("dict[Any, Early]", self._table(f"early {by} {to} {lane:d}")).values())

    def put_early(self, row: Early) -> None:
        self._put(f"early {row.by} {row.to} {row.lane:d}", (row.device, row.state, row.reason), row)

    # --- devices of others ----------------------------------------------------------------------

    def device_list(self, account: int) -> DeviceList | None:
        return self._get("list", account, None)

    def put_device_list(self, row: DeviceList) -> None:
        self._put("list", row.account, row)

    # --- sealing --------------------------------------------------------------------------------

    def own_keys(self) -> OwnKeys | None:
        return self._get("meta", "keys", None)

    def put_own_keys(self, row: OwnKeys) -> None:
        self._put("meta", "keys", row)

    def peer(self, device: int) -> bytes | None:
        return self._get("peer", device, None)

    def put_peer(self, device: int, state: bytes) -> None:
        self._put("peer", device, state)

    def drop_peer(self, device: int) -> None:
        self._put("peer", device, _NOTHING)

    def peers(self, account: int | None = None) -> list[int]:
        return sorted(device for device in self._table("peer") if account in (None, account_of(device)))

    def trusted(self, account: int) -> Trusted | None:
        return self._get("trusted", account, None)

    def put_trusted(self, row: Trusted) -> None:
        self._put("trusted", row.account, row)
        self._changed(Saved.TRUSTED, row.account)

    def trusted_accounts(self) -> list[int]:
        return sorted(self._table("trusted"))

    def claims(self) -> dict[int, int]:
        return dict(self._table("claim"))

    def put_claim(self, device: int, request: int) -> None:
        self._put("claim", device, request)

    def drop_claim(self, device: int) -> None:
        self._put("claim", device, _NOTHING)

    def missed(self) -> list[Missed]:
        return sorted(cast("dict[str, Missed]", self._table("missed")).values(), key=lambda row: (row.at, row.id))

    def put_missed(self, row: Missed) -> None:
        self._put("missed", row.id, row)

    def drop_missed(self, before: int) -> None:
        for row in self.missed():
            if row.at < before:
                self._put("missed", row.id, _NOTHING)

    def find_missed(self, message_id: str) -> Missed | None:
        return self._get("missed", message_id, None)

    def orphans(self) -> list[str]:
        return sorted(self._table("orphan"))

    def put_orphan(self, message_id: str) -> None:
        self._put("orphan", message_id, True)

    def drop_orphan(self, message_id: str) -> None:
        self._put("orphan", message_id, _NOTHING)

    def errand(self, name: str) -> bytes | None:
        return self._get("errand", name, None)

    def put_errand(self, name: str, state: bytes) -> None:
        self._put("errand", name, state)

    def drop_errand(self, name: str) -> None:
        self._put("errand", name, _NOTHING)

    def errands(self, prefix: str) -> list[str]:
        return sorted(name for name in self._table("errand") if name.startswith(prefix))
