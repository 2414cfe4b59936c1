"""Listens in at a device's door: what it says, what it hears, and whether both keep their word.

Knows:   one device's connections, frame by frame, and what everybody was told.
Touches: the history.
Never:   changes a byte that passes.
"""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from typing import TYPE_CHECKING

from nightmail.e2ee.bundles import LAST_RESORT
from nightmail.e2ee.header import HEADER_BYTES, decode_message
from nightmail.model.answers import Accepted, Bundle, Done, Said, Settled, Stocked
from nightmail.model.group_chain import is_group
from nightmail.model.ids import account_of
from nightmail.model.records import Acked, Claimed, Envelope, Known, Listed, Published, ReceiptsAcked, Sent, Voided
from nightmail.model.refusals import (
    AckAboveHead,
    DeadLettered,
    IdReused,
    MailboxFull,
    Malformed,
    NumberVoided,
    ShareFull,
)
from nightmail.model.rows import Entry, GroupEntry, PendingReceipt
from nightmail.model.spans import numbers
from nightmail.model.words import Lane, MessageState, Reason
from nightmail.wire.closing import CloseCode
from nightmail.wire.frames import decode_from_device, decode_from_server
from nightmail.wire.items import Answered, Ask, Drained, Entries, Gone, Goodbye, GroupLog, Hello, Receipts
from sim.world.world import Broken

from .history import Fate, Message
from .mailbox_room import check_failed, check_refused
from .timers import PROMISE

if TYPE_CHECKING:
    from sim.world.device import Device

WORDS = {
    "OutOfOrder": "out_of_order",
    "StaleDevices": "stale device list",
    "MailboxFull": "mailbox full for all",
    "ShareFull": "share full for all",
    "RateLimited": "rate limited",
}
GOODBYES = {CloseCode.DRAINING: "goodbye draining", CloseCode.DISPLACED: "goodbye displaced"}
REPEATS = {1: "repeat at t1", 2: "repeat at t2"}


class Tap:
    def __init__(self, device: Device) -> None:
        self._device, self._world, self._history = device, device.world, device.history
        self._seen = device.seen
        self._history.names[device.me.device] = device.name
        self._seqs: tuple[dict[int, str], dict[int, str]] = ({}, {})
        """Per lane: sequence number → the entry that stood under it."""
        self._link = 0
        self._greeted_at = 0
        self._handed = [0, 0, 0]
        """How far the normal lane, the high lane and the receipts came on this connection."""
        self._said = [0, 0]
        self._ever_said: tuple[set[int], set[int]] = (set(), set())
        """Per lane, how far the server may believe us to be."""
        self._again: Counter[tuple[Lane, int]] = Counter()
        self._drained = self._holes = False
        self._asked: dict[int, Claimed | Known | Listed | Published] = {}
        """Questions about keys and lists that are not answered yet, over this connection."""
        self._sending: dict[int, tuple[int, Sent]] = {}
        """Likewise messages, and when each was said."""
        self._places: dict[tuple[int, bytes], bytes] = {}
        """(device, place in a ratchet) → the digest of what was sealed there."""
        self._published = False

    def _note(self, message: str, what: str) -> None:
        self._history.note(message, self._device.me.device, what)

    def _broke(self, promise: str, what: str) -> Broken:
        return self._history.broke(promise, f"{self._device.name} {what}")

    # --- what it says -----------------------------------------------------------------------------

    def say(self, frame: bytes) -> None:
        for item in decode_from_device(frame):
            if isinstance(item, Ask):
                body = item.body
                self._device.groups.say(item)
                self._device.later.says(body)
                if isinstance(body, Sent):
                    self._says(body)
                    self._sending[item.ref] = self._world.now, body
                elif isinstance(body, Acked):
                    self._acks(body)
                elif isinstance(body, Voided):
                    self._known(body)
                elif isinstance(body, Claimed | Known | Listed | Published):
                    self._asked[item.ref] = body
                    if isinstance(body, Listed):
                        self._history.signed.add(body.signed)
                    elif isinstance(body, Known):
                        self._history.may_be_known.add((body.account, body.peer))
                elif isinstance(body, ReceiptsAcked) and body.upto > self._device.store.durable.receipts:
                    raise self._broke("durable before it is acknowledged", f"acknowledged receipts up to {body.upto}")
            elif isinstance(item, Hello):
                self._greets(item)

    def _greets(self, hello: Hello) -> None:
        self._link += 1
        self._greeted_at = self._world.now
        self._handed = [hello.normal, hello.high, hello.receipts]
        self._said = [hello.normal, hello.high]
        self._ever_said = ({hello.normal}, {hello.high})
        self._again.clear()
        self._asked.clear()
        self._sending.clear()
        self._device.groups.greets()
        self._drained = self._holes = False

    def _acks(self, acked: Acked) -> None:
        if acked.upto > self._device.store.durable.of(acked.lane):
            raise self._broke("durable before it is acknowledged", f"acknowledged {acked.lane.name} {acked.upto}")
        for seq in range(self._said[acked.lane] + 1, acked.upto + 1):
            if (entry := self._seqs[acked.lane].get(seq)) is not None:
                unreadable = " as unreadable" if seq in acked.unreadable else ""
                self._note(entry, f"is acknowledged{unreadable}")
        self._said[acked.lane] = max(self._said[acked.lane], acked.upto)
        self._ever_said[acked.lane].add(acked.upto)

    def _known(self, body: Sent | Voided) -> Message:
        message = self._history.messages.get(body.id)
        if message is None or message.key != (self._device.me.device, body.to, body.lane, body.n):
            raise self._broke("durable before it is sent", f"says {body.lane.name} {body.n} to {body.to:x}: {body.id}")
        return message

    def _says(self, sent: Sent) -> None:
        message, world = self._known(sent), self._world
        if self._link in message.links:
            world.hit("duplicate send")
        elif message.links:
            world.hit("resent after a reconnect")
        if self._link not in message.links:
            places = sorted(envelope.device for envelope in (*sent.envelopes, *sent.own_envelopes))
            self._note(message.id, f"is sent, for {', '.join(map(self._history.name, places)) or 'nobody'}")
        if sent.of is not None and sent.life_ms:
            self._check_left(message, sent)
        message.links.add(self._link)
        message.envelopes[sent.list_version] = frozenset(envelope.device for envelope in sent.envelopes)
        copies = frozenset(envelope.device for envelope in sent.own_envelopes)
        for device in message.envelopes[sent.list_version] | copies:
            self._history.sealed_for.setdefault(device, {})[message.id] = message
        message.own = copies if message.own is None else message.own & copies
        message.sealed_at = message.sealed_at or world.now
        if self._device.person.town.sealed:
            for envelope in (*sent.envelopes, *sent.own_envelopes):
                self._check_envelope(message, envelope)

    def _check_left(self, message: Message, sent: Sent) -> None:
        """A re-seal carries no more than what is left of the life of its original."""
        message.life_ms = min(message.life_ms or sent.life_ms, sent.life_ms)
        left = self._device.timers.left_ms(message.original)
        if left is not None:
            if sent.life_ms > left + self._device.late_ms:
                raise self._broke(PROMISE, f"seals {message.original} again for {sent.life_ms} ms, and {left} are left")
            self._world.hit("re-sealed with what was left")

    def _check_envelope(self, message: Message, envelope: Envelope) -> None:
        """Sealed once for each device, kept and repeated; and no key of a ratchet is used for two messages."""
        device, me = envelope.device, self._device
        if (trusted := me.store.trusted(message.to)) is not None and trusted.held:
            raise self._broke("not before the person agrees", f"sealed {message.id} for {device:x}")
        sealed = sha256(envelope.ciphertext).digest()
        key = me.witness.rekeyed[message.to]
        before = message.sealed.setdefault(device, (key, sealed))
        if before[0] != key:
            self._world.hit("sealed again for another key")
            message.sealed[device] = key, sealed
        elif before[1] != sealed:
            raise self._broke("sealed once", f"sealed {message.id} for {device:x} a second time")
        header = decode_message(envelope.ciphertext)
        if header.block is not None:
            self._world.hit("session begun")
        place = device, header.raw_header[2:HEADER_BYTES]
        if self._places.setdefault(place, sealed) != sealed and me.me.device not in self._history.set_back:
            raise self._broke("no key twice", f"sealed {message.id} for {device:x} with the key of another message")

    # --- what it hears ----------------------------------------------------------------------------

    def hear(self, frame: bytes) -> None:
        for item in decode_from_server(frame):
            match item:
                case Entries():
                    self._entries(item)
                case Answered():
                    self._answered(item.said)
                    self._device.groups.answered(item)
                    if (asked := self._asked.pop(item.ref, None)) is not None:
                        self._about_keys(asked, item.said)
                    if (sending := self._sending.pop(item.ref, None)) is not None:
                        self._about_message(*sending, item.said)
                case Receipts():
                    for change in item.receipts:
                        self._receipt(change)
                case Gone():
                    self._gone(item)
                case GroupLog():
                    self._device.groups.hear_log(item)
                case Drained():
                    self._empty(item)
                case Goodbye():
                    self._world.hit(GOODBYES.get(CloseCode(item.code), f"goodbye {item.code}"))
                case _:
                    pass

    def _entries(self, item: Entries) -> None:
        lane, low, high = item.lane, item.first, item.first + len(item.entries) - 1
        if low == self._handed[lane] + 1:
            self._handed[lane] = high
            self._check_credit()
        elif high <= self._handed[lane]:
            self._repeated(lane, low, len(item.entries))
        else:
            raise self._broke(
                "gap-free", f"got {item.entries[0].id} as {lane.name} {low}, {self._handed[lane] + 1} was due"
            )
        for seq, entry in enumerate(item.entries, low):
            self._entry(lane, seq, entry)

    def _repeated(self, lane: Lane, low: int, count: int) -> None:
        """Only the oldest entry that the server may not know to be safe, one at a time, outside a drain."""
        if count != 1 or low - 1 not in self._ever_said[lane] or not self._drained:
            raise self._broke("unexplained redelivery", f"got {lane.name} {low} again on one connection")
        self._again[lane, low] += 1
        self._world.hit(REPEATS.get(self._again[lane, low], "repeat after that"))
        if low <= self._device.store.durable.of(lane):
            self._world.hit("redelivered and dropped")

    def _entry(self, lane: Lane, seq: int, entry: Entry) -> None:
        if self._seqs[lane].setdefault(seq, entry.id) != entry.id:
            raise self._broke("one entry, one number", f"got {entry.id} as {lane.name} {seq}, which was another")
        if isinstance(entry, GroupEntry):
            self._device.groups.hear((lane, seq), entry)
            return
        if self._device.later.hears((lane, seq), entry):
            return
        key = (entry.by, entry.to, lane, entry.n)
        before = self._seen.arrived.get(key)
        if before is None:
            self._check_block(entry)
            self._seen.arrived[key] = seq
            self._check_author(entry, lane)
        elif before != seq:
            raise self._broke("nothing twice", f"was given {entry.id} under {before} and {seq}")
        else:
            self._world.hit("redelivered")
        self._note(entry.id, f"is handed out as {lane.name} {seq}")
        self._seen.owed.pop(key, None)

    def _check_author(self, entry: Entry, lane: Lane) -> None:
        message = self._history.messages.get(entry.id)
        if entry.by in self._history.liars:
            self._world.hit("a liar's entry")
        elif message is None or message.key != (entry.by, entry.to, lane, entry.n) or message.of != entry.of:
            raise self._broke("no ghost", f"was given {entry.id}, which nobody sent so")

    def _gone(self, item: Gone) -> None:
        lane = item.lane
        self._world.hit("gap served")
        if item.reason is Reason.ACKNOWLEDGED:
            raise self._broke("a cursor never goes back", f"hears that it has had {lane.name} {item.low} already")
        self._holes = True
        gap = f"hears that {lane.name} {item.low} to {item.high} are gone: {item.reason.name.lower()}"
        self._history.gaps.setdefault(self._device.me.device, []).append(
            Fate(self._world.now, self._device.me.device, gap)
        )  # fmt: skip
        if item.low == self._handed[lane] + 1:
            self._handed[lane] = item.high
        elif item.low > self._handed[lane] or item.low - 1 not in self._ever_said[lane]:
            raise self._broke("gap-free", f"hears that {lane.name} {item.low} is gone, at {self._handed[lane]}")
        self._seen.gaps += 1

    def _check_block(self, entry: Entry) -> None:
        """What waited from somebody who was blocked before this connection began was ended: it is not handed out."""
        if self._device.person.town.mode == "cluster":
            return  # A replaced owner may not know of the block.
        for account, peer, since, until in self._history.sure_blocks:
            if (account, peer) == (self._device.me.account, account_of(entry.by)) and until is None:
                self._world.hit("came after a block")
                if since < self._greeted_at:
                    raise self._broke("a block frees", f"got {entry.id} of {peer:x}, who is blocked")

    def _check_credit(self) -> None:
        """Nothing is handed out beyond what a slow reader may cost."""
        if self._holes:
            return  # Numbers that bring nothing cost nothing.
        out = self._handed[0] - self._said[0] + self._handed[1] - self._said[1]
        credit = self._device.person.town.limits.gateway.credit_entries
        if out > credit:
            raise self._broke("credit is kept", f"was handed {out} entries without an ack; the window has {credit}")
        if out == credit:
            self._world.hit("credit window closed")

    def _empty(self, item: Drained) -> None:
        """*Queue empty*: whatever was accepted before we came has been handed out."""
        self._drained = True
        if [item.normal, item.high, item.receipts] != self._handed:
            raise self._broke("queue empty", f"hears {item}, at {self._handed}")
        town = self._device.person.town
        if town.mode == "cluster" or self._seen.gaps or town.has_little_room or town.has_small_shares:
            return  # A replaced owner may not know better; or something else became of it than arriving.
        for key, since in self._seen.owed.items():
            message = self._history.by_number[key]
            if since < self._greeted_at and not self._history.may_be_blocked(message) and not message.life_ms:
                if town.limits.fold.ttl_ms and self._world.now - message.sealed_at > town.limits.fold.ttl_ms // 2:
                    continue  # Perhaps it expired.
                raise self._broke("queue empty", f"is told so, but {message.id} has not come")

    # --- answers ----------------------------------------------------------------------------------

    def _answered(self, said: Said) -> None:
        match said:
            case Accepted():
                self._accepted(said)
            case Settled() | NumberVoided():
                message = self._history.messages.get(said.id)
                if message is None or (message.fate == "waiting" and not message.given_up):
                    raise self._broke("answers", f"got {said!r} while it waited for an answer")
            case IdReused() | DeadLettered() | Malformed() | AckAboveHead():
                raise self._broke("answers", f"was told {said!r}")
            case _:
                word = type(said).__name__
                if word != "Done":
                    self._world.hit(WORDS.get(word, word))
                if word == "MailboxFull" and self._device.person.town.has_few_bytes:
                    self._world.hit("mailbox full by bytes")

    def _about_message(self, asked_at: int, sent: Sent, said: Said) -> None:
        if not isinstance(said, Accepted):
            self._note(sent.id, f"is answered {type(said).__name__}")
        if isinstance(said, MailboxFull | ShareFull):
            devices = [envelope.device for envelope in sent.envelopes]
            if broken := check_refused(self._device.person.town, self._known(sent), devices, asked_at):
                raise broken

    def _about_keys(self, asked: Claimed | Known | Listed | Published, said: Said) -> None:
        match asked, said:
            case Known(), Done():
                self._history.known.setdefault((asked.account, asked.peer), self._world.now)
            case Claimed(), Bundle():
                self._claimed(asked, said)
            case Listed(), Done():
                confirmed = (self._world.now, asked.version, frozenset(asked.devices))
                self._history.listed.setdefault(asked.account, []).append(confirmed)
            case Published(), Stocked():
                if self._published and (asked.one_time or asked.one_time_kem):
                    self._world.hit("keys published again")
                self._published = True
            case _:
                pass

    def _claimed(self, asked: Claimed, bundle: Bundle) -> None:
        """A one-time key is handed to one device only."""
        self._world.hit("bundle claimed")
        last_resort = bundle.kem[0] == LAST_RESORT
        if last_resort or bundle.one_time is None:
            self._world.hit("exhausted bundle")
        who = self._device.me.device, asked.request
        for key in (None if last_resort else bundle.kem, bundle.one_time):
            if key is not None and self._history.one_time.setdefault((bundle.device, key), who) != who:
                raise self._broke("one-time keys go to one", f"got one of {bundle.device:x} that somebody has")

    def _accepted(self, said: Accepted) -> None:
        world, message = self._world, self._history.messages.get(said.id)
        if message is None or message.by != self._device.me.device:
            raise self._broke("answers", f"was told {said!r} about what it never sent")
        if message.answer is not None:
            world.hit("answered again")
            if message.answer != said:
                raise self._broke("answers", f"{message.id} was answered {said!r}, before that {message.answer!r}")
            return
        message.answer = said
        if said.tag == b"":
            world.hit("voided")
            self._note(message.id, "is given up")
            message.fate = "voided"
            return
        if message.given_up:
            world.hit("void came too late")
        if len(message.envelopes) > 1:
            world.hit("stale list repaired")
        message.fate, message.at, message.version = "sent", said.at, said.list_version
        self._note(message.id, f"is accepted, at {said.at}, under list {said.list_version}")
        message.accepted_at = world.now
        if said.list_version not in message.envelopes:
            raise self._broke("answers", f"{message.id} was accepted under list {said.list_version}, unheard of")
        for device in message.envelopes[said.list_version]:
            seen = self._history.of(device)
            if message.key not in seen.arrived:
                seen.owed[message.key] = world.now

    # --- receipts ---------------------------------------------------------------------------------

    def _receipt(self, change: PendingReceipt) -> None:
        by, to, lane, device, state, number = change.key
        if number < 0:
            self._world.hit("failures shared an interval")
        if change.seq <= self._handed[2]:
            raise self._broke("receipts in order", f"got receipt {change.seq} after {self._handed[2]}")
        self._handed[2] = change.seq
        if self._device.later.news(change):
            return
        seen, reason = self._seen, change.reason
        if is_group(to):
            self._device.groups.receipt(change)
            return
        if by in self._history.liars:
            return
        became = MessageState(state).name.lower() + (f" ({reason.name.lower()})" if reason else "")
        for n in numbers(change.numbers):
            what = (by, to, Lane(lane), n)
            if self._device.later.receipt(what, device, MessageState(state)):
                continue
            if (message := self._history.by_number.get(what)) is not None:
                self._note(message.id, f"is said to be {became} on {self._history.name(device)}")
            match MessageState(state):
                case MessageState.DELIVERED:
                    seen.delivered_at.setdefault(what, set()).add(device)
                    self._history.delivered(what, device)
                    if device in seen.failed_at.get(what, {}):
                        raise self._broke("receipts never go backward", f"{what} on {device:x}")
                case MessageState.READ:
                    seen.read_at.setdefault(what, set()).add(device)
                case MessageState.FAILED:
                    if device in seen.delivered_at.get(what, ()):
                        raise self._broke("receipts never go backward", f"{what} on {device:x}")
                    if reason == Reason.EXPIRED:
                        self._check_age(self._history.by_number[what], change.at)
                    elif reason == Reason.MAILBOX_FULL and (
                        broken := check_failed(self._device.person.town, self._history.by_number[what], device)
                    ):
                        raise broken
                    seen.failed_at.setdefault(what, {})[device] = reason
                    self._world.hit(f"failed: {reason.name.lower()}")
                case MessageState.SENT:
                    raise self._broke("receipts", "got a receipt for having sent")
            if account_of(by) != self._device.me.account:
                raise self._broke("receipts", f"got a receipt for what {by:x} sent")

    def _check_age(self, message: Message, at: int) -> None:
        """Nothing expires before its time, by whatever clock the server has."""
        limits = (message.life_ms, self._device.person.town.limits.fold.ttl_ms)
        least = min((limit for limit in limits if limit), default=None)
        age = self._world.now - message.sealed_at + self._world.slack_ms(message.sealed_at, at)
        if least is None or age < least:
            raise self._broke("expiry in time", f"{message.id} expired {age} ms after it was sealed: {limits}")
