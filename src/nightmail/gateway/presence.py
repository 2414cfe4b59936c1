"""Presence, for all connections of one node.

Knows:   which connections speak of presence, which of them are in the foreground, and whom each watches.
Touches: the presence port, the desk, and sessions by what `PresentSession` names.
Never:   writes a record: nothing of this is in the log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from nightmail.engine.ports import Failed, Presence, Sighting
from nightmail.model.forms import ACCOUNT_MAX
from nightmail.model.ids import DEVICE_BITS
from nightmail.model.refusals import Malformed, RateLimited, Unavailable
from nightmail.model.rows import Account
from nightmail.model.words import Audience
from nightmail.wire.items import (
    REF_MAX,
    AboutPresence,
    Answered,
    Foreground,
    Peek,
    PersonSeen,
    Seen,
    ShownTo,
    ShowTo,
    Typing,
    Watch,
)

from .ports import Shared
from .presence_limits import PresenceLimits
from .rates import Shares
from .typing_relay import TypingRelay
from .watchers import PresentSession, Watchers, Watching

COUNTED = 10_000
"""Accounts whose questions are counted: as in `budgets.py`."""


class ConnectionPresence:
    """Made when a device says the first item about presence; it then understands what is said about it."""

    __slots__ = ("_node", "is_in_foreground", "session", "watched")

    def __init__(self, node: NodePresence, session: PresentSession) -> None:
        self._node, self.session = node, session
        self.is_in_foreground = False
        self.watched: tuple[Watching, ...] = ()

    def beat(self, now: int) -> None:
        """The device sent a heartbeat."""
        if self.is_in_foreground:
            self._node.presence.beat(self.session.device, now)

    def take(self, item: AboutPresence, now: int) -> Malformed | None:
        """Why the item cannot be taken, if it is malformed."""
        if refusal := malformed(item, self._node.limits):
            return refusal
        node, session = self._node, self.session
        match item:
            case Foreground():
                self.is_in_foreground = item.on
                if item.on:
                    self.beat(now)
                else:
                    node.presence.leave(session.device)
            case Watch():
                node.watch(self, item, now)
            case Peek():
                node.peek(self, item, now)
            case Typing():
                node.typing.take(session.device, item.to, now)
            case ShowTo():
                node.show_to(session, item, now)
        return None

    def end(self) -> None:
        """The connection has ended."""
        self._node.remove(self)


class NodePresence:
    """A `PresenceListener`."""

    def __init__(
        self, shared: Shared, next_turn: Callable[[Callable[[], None]], None], presence: Presence,
        limits: PresenceLimits,
    ) -> None:  # fmt: skip
        """`next_turn` calls what it is given in a later turn of the event loop."""
        self._shared, self.presence, self.limits = shared, presence, limits
        self.watchers = Watchers(shared, presence, limits, next_turn)
        self._asks = Shares(limits.asks_per_s, limits.asks_burst, COUNTED)
        self._connections: dict[int, ConnectionPresence] = {}
        """Device → its connection, of those that have said anything about presence."""
        self.typing = TypingRelay(shared, presence, limits, self._asks, self._connections)
        presence.attend(self)

    # --- connections --------------------------------------------------------------------------

    def connection(self, session: PresentSession) -> ConnectionPresence:
        made = self._connections[session.device] = ConnectionPresence(self, session)
        return made

    def remove(self, connection: ConnectionPresence) -> None:
        self._unwatch(connection)
        del self._connections[connection.session.device]
        self.presence.leave(connection.session.device)

    def dismissed(self, device: int) -> None:
        """The device is no more; perhaps its account ended with it, and then nothing of it may be left."""
        account = device >> DEVICE_BITS

        def shown(row: Account | None) -> None:
            if row is None or row.closed:
                self.presence.forget(account)
            else:
                self.presence.forget_device(device)

        self._shared.desk.account(account, shown)

    def tick(self, now: int) -> None:
        self.presence.tick(now)
        self.watchers.tick(now)
        self._asks.forget_full(now)

    # --- questions ----------------------------------------------------------------------------

    def watch(self, connection: ConnectionPresence, item: Watch, now: int) -> None:
        session = connection.session
        if refusal := self._charge(session, len(item.accounts), now):
            _answer(session, item.ref, refusal)
            return
        self._unwatch(connection)
        connection.watched = tuple(self.watchers.add(session, account) for account in dict.fromkeys(item.accounts))
        self._ask(connection, item)

    def _unwatch(self, connection: ConnectionPresence) -> None:
        for watch in connection.watched:
            self.watchers.remove(watch)
        connection.watched = ()

    def peek(self, connection: ConnectionPresence, item: Peek, now: int) -> None:
        if refusal := self._charge(connection.session, len(item.accounts), now):
            _answer(connection.session, item.ref, refusal)
        else:
            self._ask(connection, item)

    def _ask(self, connection: ConnectionPresence, item: Watch | Peek) -> None:
        session = connection.session
        self.watchers.ask(session, item.accounts, lambda: connection.watched, partial(_seen, session, item.ref))

    def _charge(self, session: PresentSession, amount: int, now: int) -> RateLimited | None:
        if wait_ms := self._asks.wait_ms(session.device >> DEVICE_BITS, now, amount):
            self._shared.counters.presence_limited += 1
            return RateLimited(wait_ms)
        return None

    # --- the account's own choice -------------------------------------------------------------

    def show_to(self, session: PresentSession, item: ShowTo, now: int) -> None:
        account, wanted = session.device >> DEVICE_BITS, item.audience
        if refusal := self._charge(session, 1, now):
            _answer(session, item.ref, refusal)
        elif wanted is None:
            self.presence.sightings([account], partial(_shown_to, session, item.ref, account))
        else:
            self.presence.show_to(account, wanted, partial(_stored, session, item.ref, wanted))

    # --- changes ------------------------------------------------------------------------------

    def presence_changed(self, account: int) -> None:
        self.watchers.changed(account)

    def audience_changed(self, account: int) -> None:
        """Others may see less of it or more; and so may it of others."""
        self.watchers.changed(account)
        self._shared.desk.account(account, self._look_again)

    def _look_again(self, row: Account | None) -> None:
        for device in row.devices if row else ():
            if connection := self._connections.get(device):
                for watch in connection.watched:
                    self.watchers.changed(watch.account)


def malformed(item: AboutPresence, limits: PresenceLimits) -> Malformed | None:
    match item:
        case Watch() | Peek():
            most = limits.watched if isinstance(item, Watch) else limits.asked
            if len(item.accounts) > most:
                return Malformed(f"at most {most} accounts at once")
            if not all(1 <= account <= ACCOUNT_MAX for account in item.accounts):
                return Malformed("no such account")
        case Typing() if not 1 <= item.to <= ACCOUNT_MAX:
            return Malformed("no such account")
        case _:
            pass
    return None if _has_sound_ref(item) else Malformed("a ref out of range")


def _has_sound_ref(item: AboutPresence) -> bool:
    return isinstance(item, Foreground | Typing) or 0 <= item.ref <= REF_MAX


def answer_ref(item: AboutPresence) -> int:
    """Under what a refusal can be said; 0: under nothing."""
    return 0 if isinstance(item, Foreground | Typing) or not _has_sound_ref(item) else item.ref


def _seen(session: PresentSession, ref: int, people: Sequence[PersonSeen] | Failed) -> None:
    if isinstance(people, Failed):
        _answer(session, ref, Unavailable())
    else:
        session.tell(Seen(ref, tuple(people)))


def _shown_to(session: PresentSession, ref: int, account: int, found: Mapping[int, Sighting] | Failed) -> None:
    if isinstance(found, Failed):
        _answer(session, ref, Unavailable())
    else:
        session.tell(ShownTo(ref, found[account].audience))


def _stored(session: PresentSession, ref: int, audience: Audience, failed: Failed | None) -> None:
    if failed:
        _answer(session, ref, Unavailable())
    else:
        session.tell(ShownTo(ref, audience))


def _answer(session: PresentSession, ref: int, refusal: RateLimited | Unavailable) -> None:
    if ref:
        session.tell(Answered(ref, refusal))
