# pyright: reportPrivateUsage=false
"""Bugs on the device: what is durable before what, which number and id a message has, what is taken in once."""

from __future__ import annotations

from nightmail.client.inbox.acks import Acks
from nightmail.client.inbox.inbox import Inbox
from nightmail.client.inbox.parked import Parked
from nightmail.client.inbox.read_marks import ReadMarks
from nightmail.client.inbox.receipts import IncomingReceipts
from nightmail.client.link.liveness import Liveness
from nightmail.client.machine.machine import Machine
from nightmail.client.outbox import envelopes
from nightmail.client.outbox.sending import Sending
from nightmail.client.outbox.ticks import Ticks
from nightmail.client.trust.device_lists import DeviceLists

from .tools import Bug, Focus, edit, edit_method

DEVICE = ("tests/client",)
BOTH = ("node", "cluster")
UNREADABLE = Focus({"unreadable": 0.3, "cut": 6}, ("pressure", "slow", "kills"))
PARKING = Focus({"unreadable": 0.3, "offline": 8, "cut": 4, "crash": 3, "high_lane": 0.3}, ("slow",))
"""Worlds in which a device comes back to much that waits, and cannot open some of it yet."""

BUGS = (
    Bug("a client acknowledges before its commit",
        edit_method(Machine, "turn", "self._commit()", "if context.events: self._commit()"), BOTH, DEVICE),
    Bug("a client's cursor is not in the same transaction",
        edit_method(Inbox, "_advance", "self._context.store.put_cursors(cursors)", "pass"), BOTH, DEVICE),
    Bug("a client's Hello has an old cursor",
        edit_method(Liveness, "open", "cursors.normal, cursors.high,", "max(0, cursors.normal - 1), cursors.high,"),
        BOTH, DEVICE),
    Bug("a client does not send again after a reconnect",
        edit_method(Sending, "connected", "self.begin(stream)", "pass"), BOTH, DEVICE, seconds=12),
    Bug("a client gives a retry a new id", edit(envelopes.seal, "id=row.id,", "id=new_id(context),"), BOTH, DEVICE),
    Bug("a client gives a retry a new number",
        edit(envelopes.seal, "n=row.n,", "n=context.store.last_number(row.to, row.lane),"), BOTH, DEVICE),
    Bug("a client counts its floor wrongly", edit(envelopes.seal, "floor=floor,", "floor=row.n,"), BOTH, DEVICE,
        focus=Focus({"cut": 6, "hang": 3, "write": 60}, ("pressure", "slow"))),
    Bug("a client never looks a stale list up again",
        edit_method(DeviceLists, "forget", "self._known.pop(account, None)", "return"), BOTH, DEVICE),
    Bug("a client takes a redelivered entry for a new one",
        edit_method(Inbox, "_take_entries", "item.entries[max(0, cursor + 1 - item.first) :]", "item.entries"),
        BOTH, DEVICE, seconds=12),
    Bug("a client stops at a gap",
        edit_method(Inbox, "_take_gone", "self._advance(item.lane, item.high, 1)", "pass"), BOTH, DEVICE),
    Bug("a client jumps over what is missing",
        edit_method(Inbox, "_take_gone", "(item.lane, item.high, 1)", "(item.lane, item.high + 1, 1)"), BOTH, DEVICE),
    Bug("a client names what it could not open only once",
        edit_method(Acks, "_say", "self._context.ask(Acked(lane, upto, tuple(unopened)), answered)",
                    "self._context.ask(Acked(lane, upto, tuple(unopened)), answered); "
                    "self._context.store.drop_unopened(lane, unopened)"), BOTH, DEVICE, seconds=12, focus=UNREADABLE),
    Bug("a client acknowledges receipts that it did not take in",
        edit_method(Inbox, "take_receipts", "self._receipts.take(receipt)", "pass"), BOTH, DEVICE),
    Bug("a client says only once what was read",
        edit_method(ReadMarks, "_answered", "if isinstance(said, Refusal) and said.retry:", "if False:"), BOTH, DEVICE),
    Bug("a client's ticks go back",
        edit_method(Ticks, "place", "if RANK[state] <= RANK[before.state]:", "if state is before.state:"),
        BOTH, DEVICE, seconds=12),
    Bug("a client acknowledges what is parked",
        edit_method(Acks, "_upto", "if first is None else first - 1", ""),
        BOTH, DEVICE, seconds=12, focus=PARKING),
    Bug("a client forgets with a restart what is parked",
        edit_method(Parked, "put", "self._context.store.put_errand(_name(lane, seq), _encode(entry))", "pass"),
        BOTH, DEVICE, seconds=12, focus=PARKING),
    Bug("a client never judges what is parked",
        edit_method(Inbox, "_judge_parked", "if parked.must_be_judged:", "if False:"), BOTH, DEVICE, seconds=12,
        focus=PARKING),
    Bug("a client shows an author's message before one that is parked",
        edit_method(Inbox, "_take_entry", "self._parked.entries and self._parked.is_behind(lane, entry)", "False"),
        BOTH, DEVICE, seconds=12, focus=PARKING),
    Bug("a client keeps only the newest of the receipts that came too early",
        edit_method(IncomingReceipts, "_keep_early", "add_span(spans, low, high)", "spans[:] = low, high"),
        BOTH, DEVICE, seconds=12, focus=Focus({"link": 2, "hang": 6, "remove": 0, "start_over": 0}, ("slow",))),
    Bug("a client fails what a receipt has shown to be delivered",
        edit_method(Ticks, "failed", "message.state in (Tick.DELIVERED, Tick.READ, Tick.FAILED)",
                    "message.state is Tick.FAILED"), BOTH, DEVICE, seconds=12,
        focus=Focus({"cut": 6, "second_link": 6}, ("pressure", "slow"), lifetime_ms=1_000)),
)  # fmt: skip
