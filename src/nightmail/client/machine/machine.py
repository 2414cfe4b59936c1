"""The client without sockets, clocks or tasks: frames in, one `Turn` out.

Knows:   what a driver and a person can do to it. What it means, the parts know (`parts.py`).
Never:   lets a frame or an event out before everything behind it is committed.

A driver calls what happened (`connected`, `receive`, `closed`, `tick`, `compose`, …), always with the time, and then
`turn`, which commits and says what to do. It may call several methods before one `turn`: they share one commit. `now`
is milliseconds since 1970 and must not go back.

If the store fails, or a method raises anything but a ClientError, the machine is broken: call `roll_back`, and go on
with `restarted()`.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from random import Random, SystemRandom

from nightmail.client.errors import Misbehaved
from nightmail.client.group_errors import NotInGroup
from nightmail.client.groups.parts import GroupParts
from nightmail.client.limits import ClientLimits
from nightmail.client.link.framing import pack
from nightmail.client.link.presence import PresenceView
from nightmail.client.media.part import Media
from nightmail.client.media.sealed_file import LocalFile
from nightmail.client.messages import Message
from nightmail.client.own_devices.device_linking import PendingLink
from nightmail.client.own_devices.past import Past
from nightmail.client.schedules.scheduling import Scheduling
from nightmail.client.store.port import Store
from nightmail.client.store.rows import Contact, Cursors, Identity
from nightmail.client.store.schedule_rows import ScheduledRow
from nightmail.client.trust.e2ee_sealer import E2eeSealer
from nightmail.e2ee.chance import SYSTEM, Chance
from nightmail.e2ee.content import Content, encode_content
from nightmail.e2ee.curves import signing_public
from nightmail.model.group_chain import is_group
from nightmail.model.words import Kind, Lane
from nightmail.wire import frames as wire

from .parts import MakeSealer, OwnDeviceParts, Parts, build_sealer
from .turn import Ending, Turn

BROKEN = 1006
"""WebSocket's own number for "no close frame came"."""


class Machine:
    def __init__(
        self,
        store: Store,
        identity: Identity,
        limits: ClientLimits | None = None,
        chance: Random | None = None,
        secrets: Chance = SYSTEM,
        make_sealer: MakeSealer = build_sealer,
    ) -> None:
        """`secrets` is what keys and nonces are drawn from; another sealer than the real one is for tests."""
        self.limits, self._make_sealer = limits or ClientLimits(), make_sealer
        self.parts = Parts(store, identity, self.limits, chance or SystemRandom(), secrets, make_sealer)
        self._context, self._liveness = self.parts.context, self.parts.liveness
        self._timed = self.parts.timed()

    # --- the turn -------------------------------------------------------------------------------

    def turn(self) -> Turn:
        """Commit what happened since the last turn, then hand over what follows from it. Raises StoreFailed.

        The driver must carry the whole turn out. Whatever is in it is durable: a frame that is lost with the
        connection is sent again by the next one, an event that is lost with the process can be read from the store.
        """
        context = self._context
        self._commit()
        frames = [*self._liveness.take_hello(), *pack(context.items, context.frame_bytes)]
        events = list(context.events)
        context.items.clear()
        context.events.clear()
        return Turn(frames, events, self._deadline(), context.hang_up)

    def _commit(self) -> None:
        if self._context.store.dirty:
            self.parts.deadlines.committing()
            self._context.store.commit()

    def _deadline(self) -> int | None:
        return min((due for part in self._timed if (due := part.deadline()) is not None), default=None)

    def roll_back(self) -> None:
        """Drop whatever is not committed. The machine is broken afterwards: go on with `restarted()`."""
        self._context.store.rollback()

    def restarted(self) -> Machine:
        """A machine made from what is durable, as after a restart of the process. Call `connected` on a new
        connection; the one that this machine had must be closed."""
        context = self._context
        made = Machine(
            context.store, context.identity, self.limits, context.chance, context.secrets, self._make_sealer
        )  # fmt: skip
        made.parts.presence.resume(self.parts.presence)
        return made

    # --- the connection -------------------------------------------------------------------------

    @property
    def online(self) -> bool:
        return self._context.online

    @property
    def listens(self) -> bool:
        """False when it is not connected, or wants to hang up: `receive` then ignores what comes."""
        return self._liveness.is_open and self._context.hang_up is None

    @property
    def cursors(self) -> Cursors:
        """How far the mailbox is in the store."""
        return self._context.store.cursors()

    def connected(self, now: int) -> None:
        """A socket is open. Take a turn at once: its first frame is Hello, which the server waits for."""
        self._at(now)
        self._liveness.open(self.parts.acks.cursors)

    def receive(self, frame: bytes, now: int) -> None:
        """A frame arrived. Take a turn soon; frames that arrive meanwhile may share it.

        If the server said what it may not say, the turn asks to hang up. Whatever this raises leaves the machine
        broken.
        """
        self._at(now)
        if not self.listens:
            return
        takers = self.parts.takers
        try:
            items = wire.decode_from_server(frame)
            for item in items:
                if not takers[type(item)].is_sound(item):
                    raise Misbehaved(f"a number in {type(item).__name__} that cannot be")
            for item in items:
                taker = takers[type(item)]
                if not taker.before_welcome and not self._context.online:
                    raise Misbehaved("something before Welcome")
                taker.take(item)
        except (Misbehaved, wire.BadFrame) as error:
            # The items before it in the frame were in order, and count.
            self._context.hang_up = str(error)
        except (ValueError, OverflowError, LookupError, struct.error) as error:
            # An item may be half written.
            raise Misbehaved(f"the server sent what no client understands ({type(error).__name__})") from error

    def leave(self, now: int) -> None:
        """The driver is about to close the connection. Take a turn, and write its frames before closing: they hold
        the acknowledgements that were still waiting for more."""
        self._at(now)
        self.parts.acks.flush()

    def confirm(self, now: int) -> None:
        """Ask the server to confirm what it is told of received messages. Take a turn; after each, look whether it
        `is_confirmed`."""
        self._at(now)
        self.parts.acks.confirm()

    @property
    def is_confirmed(self) -> bool:
        """The server has confirmed everything that it was to be told of messages received and read here; the logs of
        large groups are fetched; and nothing about messages for later is under way."""
        parts = self.parts
        is_settled = (parts.groups is None or parts.groups.logs.is_settled) and (
            parts.scheduling is None or parts.scheduling.is_settled
        )
        return parts.acks.is_confirmed and parts.read_marks.is_confirmed and is_settled

    def lost(self, now: int) -> Ending:
        """The connection broke without a close frame; as `closed`."""
        return self.closed(BROKEN, now)

    def closed(self, code: int, now: int, why: str = "") -> Ending:
        """The connection was closed, by either side. Take a turn; give the ending to the route."""
        self._at(now)
        if not self._liveness.is_open:
            return Ending(code, 0)
        self.parts.lost()
        return self._liveness.close(code, why)

    def tick(self, now: int) -> None:
        """The deadline of the last turn has come. Take a turn at once. Calling it early does no harm.

        Call it once before the app can read anything: what ended while nothing ran is deleted then.
        """
        self._at(now)
        for part in self._timed:
            part.tick()

    # --- what the person does -------------------------------------------------------------------
    # After each of these: take a turn. The app may be told that it is done once that turn is there.

    def compose(
        self, to: int, body: bytes, now: int, *, kind: Kind = Kind.TEXT, lane: Lane = Lane.NORMAL, life_ms: int = 0
    ) -> Message:
        """Queue a message. Raises TooLarge; nothing is queued then."""
        self._at(now)
        message = self.parts.outbox.compose(to, body, kind, lane, life_ms)
        if not is_group(to):
            self.parts.known_people.know(to)
        return message

    def write(
        self, to: int, content: Content, now: int, *, lane: Lane = Lane.NORMAL, life_ms: int | None = None
    ) -> Message:
        """Queue a message that lives as long as the timer of its conversation says, or `life_ms`: outside its seal, so
        that the server can drop it, and inside, so that the server cannot change it. Raises TooLarge, Misused."""
        body, life_ms = self._bodied(to, content, life_ms, now)
        return self.compose(to, body, now, kind=content.kind, lane=lane, life_ms=life_ms)

    def _bodied(self, to: int, content: Content, life_ms: int | None, now: int) -> tuple[bytes, int]:
        """A content as it is sealed, and its life."""
        if is_group(to) and self.groups(now).known.joined(to) is None:
            raise NotInGroup(to)
        if life_ms is None:
            life_ms = self.timer(to)
        self.parts.timer_changes.check(life_ms)
        return encode_content(content._replace(life_ms=life_ms or None)), life_ms

    def schedule(
        self, to: int, content: Content, deliver_at: int, now: int, *, life_ms: int | None = None
    ) -> ScheduledRow:  # fmt: skip
        """Queue a message for later; it lives like one that is written now, from its delivery on. Raises TooLarge,
        Misused, NotInGroup; nothing is queued then."""
        self._at(now)
        body, life_ms = self._bodied(to, content, life_ms, now)
        self.parts.outbox.check_size(body)
        if not is_group(to):
            self.parts.known_people.know(to)
        return self._scheduling.schedule(to, body, content.kind, life_ms, deliver_at)

    def cancel(self, message_id: str, now: int) -> None:
        """Take a message for later back. What comes of it is told: `ScheduleChanged`, or `CancelRefused`."""
        self._at(now)
        self._scheduling.cancel(message_id)

    def timer(self, peer: int) -> int:
        """How long messages in this conversation live; 0: they stay."""
        if is_group(peer):
            return self.groups(0).known.settings(peer).timer_ms
        return self.parts.timer_changes.timer(peer)

    def set_timer(self, peer: int, life_ms: int, now: int) -> Message:
        """Change it, by a message that everybody in the conversation sees; 0: from now on messages stay.

        Raises Misused unless it is 0, or in the bounds that every server has.
        """
        self._at(now)
        change = self.parts.timer_changes.set(peer, life_ms)
        self.parts.known_people.know(peer)
        return change

    def mark_read(self, peer: int, now: int, only: Collection[str] | None = None) -> int:
        """Mark everything from a peer as read, or `only` these messages. How many became so."""
        self._at(now)
        read = self.parts.read_marks.mark(peer, only)
        if read and self.parts.own is not None:
            self.parts.own.read_sync.tell(read)
        return len(read)

    def give_up(self, message_id: str, now: int) -> bool:
        """Take a message back that the server does not have; False if it no longer waits."""
        self._at(now)
        return self.parts.media.give_up(message_id) or self.parts.outbox.give_up(message_id)

    def agree(self, account: int, now: int, *, key: bytes, verified: bool) -> bool:
        """The person accepts this key of an account, or has verified it; False if the account has another key."""
        self._at(now)
        agreed = self.sealer.believed.agree(account, key, verified=verified)
        if agreed:
            self.parts.unblocked(account)
        return agreed

    def put_contact(self, row: Contact, now: int) -> None:
        """The person changed a contact, or made one; the other own devices are told."""
        self._at(now)
        self._own.contact_sync.put(row)
        if row.name:
            self.parts.known_people.know(row.account)

    def drop_contact(self, account: int, now: int) -> None:
        """The person deleted a contact; likewise."""
        self._at(now)
        self._own.contact_sync.drop(account)

    def learn_handle(self, account: int, handle: str, now: int) -> None:
        """The person named an account by this handle; likewise."""
        self._at(now)
        self._own.contact_sync.learn(account, handle)

    def backup_made(self, now: int) -> None:
        """A backup was made and noted (`backup/newest.py`); the other own devices are told."""
        self._at(now)
        self._own.backup_sync.step()

    def past(self, now: int) -> Past:
        """What another device knew before this one. Take a turn after each use."""
        self._at(now)
        return self._own.past

    def send_file(
        self, to: int, content: Content, now: int, *, file: LocalFile, lane: Lane = Lane.NORMAL,
        life_ms: int | None = None,
    ) -> Message:  # fmt: skip
        """Queue a file; `content` points to it, without a place. Raises TooLarge, Misused, NotInGroup."""
        body, life_ms = self._bodied(to, content, life_ms, now)
        message = self.media(now).begin(to, body, life_ms, lane, file)
        if not is_group(to):
            self.parts.known_people.know(to)
        return message

    def media(self, now: int) -> Media:
        """Files: how far they have come. Take a turn after each use."""
        self._at(now)
        return self.parts.media

    def groups(self, now: int) -> GroupParts:
        """Groups: making and changing them, and who is in them. Take a turn after each use."""
        self._at(now)
        assert self.parts.groups is not None, "a test's sealer has no keys"
        return self.parts.groups

    def presence(self, now: int) -> PresenceView:
        """What the person shows of themselves, and sees of others. Take a turn after each use."""
        self._at(now)
        return self.parts.presence

    # --- own devices: take a turn after each ----------------------------------------------------

    def link(self, pending: PendingLink, now: int) -> None:
        """Link a new device. It goes on by itself until `DeviceLinked` or `DeviceNotLinked`. Raises Misused."""
        self._at(now)
        self._own.linking.begin(pending)

    def dismiss(self, device: int, now: int) -> None:
        """The person revoked a device: stop linking it, if that was still going on."""
        self._at(now)
        self._own.linking.dismiss(device, "it was revoked")

    def sign_again(self, now: int) -> None:
        """The person changed the account's devices at the server: the primary device signs the list that results."""
        self._at(now)
        self.sealer.own_list.look()

    def forget_own_devices(self) -> None:
        """Ask for this account's own list before the next message is sealed. Call it after a device was linked or
        revoked.

        The server tells a sender that it missed an own device only if it sealed for another own device: a sender that
        believes to be the only device must ask.
        """
        self.parts.forget_own_devices()

    # --- whom it trusts -------------------------------------------------------------------------

    @property
    def sealer(self) -> E2eeSealer:
        assert self.parts.e2ee is not None, "a test's sealer has no keys"
        return self.parts.e2ee

    @property
    def _scheduling(self) -> Scheduling:
        assert self.parts.scheduling is not None, "a test's sealer has no keys"
        return self.parts.scheduling

    @property
    def _own(self) -> OwnDeviceParts:
        assert self.parts.own is not None, "a test's sealer has no keys"
        return self.parts.own

    def account_key(self, account: int) -> bytes:
        """The key that an account's list is signed with; empty: not known here."""
        sealer = self.sealer
        if account == self._context.identity.account and sealer.own_list.is_primary:
            return signing_public(sealer.key_stock.keys.account)
        known = sealer.believed.of(account)
        return known.key if known else b""

    def _at(self, now: int) -> None:
        self._context.now = max(self._context.now, now)
