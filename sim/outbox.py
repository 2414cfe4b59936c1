"""A simulated client's outbox: numbers its messages, sends them in order, repairs what is refused.

Durable before anything is sent; the same id and number on every retry, whatever the ciphertext.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from nightmail.model.answers import Accepted, Said, Settled
from nightmail.model.ids import MessageId
from nightmail.model.records import Envelope, Sent, Voided
from nightmail.model.refusals import (
    DeadLettered,
    IdReused,
    MailboxFull,
    NumberVoided,
    OutOfOrder,
    Refusal,
    StaleDevices,
    UnknownRecipient,
)
from nightmail.model.words import Kind, Lane, Reason

from .history import Message

if TYPE_CHECKING:
    from .client import Client

RESEALS = 3
TRIES_WHEN_FULL = 3
LOOK_UP_MS = 1_000
"""Then ask again for a device list: whoever was asked may be no more."""


class Outbox:
    def __init__(self, client: Client) -> None:
        self.client = client
        self.waiting: dict[tuple[int, Lane], dict[int, Message]] = {}
        """(to, lane) → number → message, in order: not answered yet."""
        self._last: dict[tuple[int, Lane], int] = {}
        self._given_up: set[str] = set()
        self._tries: dict[str, int] = {}
        self._resealed: dict[tuple[str, int], int] = {}
        self._only: dict[str, int] = {}
        """Re-seal → the one device it is for."""
        self.accepted: deque[Message] = deque(maxlen=8)
        """The last few that were."""
        self._known: dict[str, Accepted] = {}
        self._lists: dict[int, tuple[int, dict[int, int]]] = {}
        self._retrying: dict[str, int] = {}
        """Message → the life in which another attempt is on its way."""
        self._sequence = 0

    @property
    def empty(self) -> bool:
        return not any(self.waiting.values())

    # --- writing --------------------------------------------------------------------------------

    def compose(self, to: int, lane: Lane, *, of: str | None = None, only: int = 0, life_ms: int = 0) -> None:
        """Write a message. It is durable here before it is sent, and has its number for good."""
        client = self.client
        n = self._last.get((to, lane), 0) + 1
        # Counted from the lowest number without an answer: the server keeps answers for that many.
        if n - min(self.waiting.get((to, lane)) or (n,)) >= client.person.window:
            client.world.hit("window full")
            return
        self._sequence += 1
        self._last[to, lane] = n
        chance = f"{client.world.chance.getrandbits(20):x}"
        ident = str(MessageId(client.world.now, self._sequence, client.device, chance))
        answers = client.latest.get(to) if of is None else None
        message = Message(ident, client.device, to, lane, n, of, answers, client.newest.get(to, 0), life_ms=life_ms)
        client.history.add(message)
        self.waiting.setdefault((to, lane), {})[n] = message
        if only:
            self._only[ident] = only
        client.world.tell(client.name, f"writes {ident} to {to:x} as {lane.name} {n}" + (f" of {of}" if of else ""))
        self._send(message)

    def resend_all(self) -> None:
        for messages in self.waiting.values():
            for message in list(messages.values()):
                self._send(message)

    def give_up(self) -> None:
        """A person no longer wants something sent: its number is voided."""
        for messages in self.waiting.values():
            for message in messages.values():
                if message.of is None:
                    self._given_up.add(message.id)
                    self.client.world.tell(self.client.name, f"gives up {message.id}")
                    self._send(message)
                    return

    # --- sending --------------------------------------------------------------------------------

    def _send(self, message: Message) -> None:
        if message.fate != "waiting":
            return
        client = self.client
        key = (message.to, message.lane)
        floor = min(self.waiting[key])
        if message.id in self._given_up:
            body = Voided(message.to, message.lane, message.n, floor, message.id)
            client.say(body, lambda said: self._on_answer(message, said))
            return
        for account in (message.to, client.person.account):
            if account not in self._lists:
                self._refresh(account, message)
                return
        version, devices = self._lists[message.to]
        own = self._lists[client.person.account][1]
        only = self._only.get(message.id)
        to = {d: r for d, r in devices.items() if d != client.device and only in (None, d)}
        copies = {d: r for d, r in own.items() if d != client.device and only in (None, d)}
        message.envelopes[version] = frozenset(to)
        message.own = frozenset(copies) if message.own is None else message.own & frozenset(copies)
        message.sealed_at = message.sealed_at or client.world.now
        body = Sent(
            to=message.to, lane=message.lane, n=message.n, floor=floor, seen=client.newest.get(message.to, 0),
            id=message.id, tag=tag_of(message.id), kind=Kind.TEXT, of=message.of, life_ms=message.life_ms,
            list_version=version, envelopes=self._seal(message, to), own_envelopes=self._seal(message, copies),
        )  # fmt: skip
        client.say(body, lambda said: self._on_answer(message, said))
        if client.person.repeats_itself():
            client.world.hit("duplicate send")
            client.say(body, lambda said: self._on_answer(message, said))

    def _seal(self, message: Message, devices: dict[int, int]) -> tuple[Envelope, ...]:
        return tuple(Envelope(d, r, seal(message.original, d, r)) for d, r in devices.items())

    def _refresh(self, account: int, message: Message) -> None:
        client, life, asking = self.client, self.client.life, [True]

        def answered(version: int, devices: dict[int, int]) -> None:
            self._lists[account] = (version, devices)
            go_on()

        def go_on() -> None:
            if asking[0] and life == client.life:
                asking[0] = False
                self._send(message)

        client.look_up(account, answered)
        client.world.later(LOOK_UP_MS, go_on)

    def forget_lists(self) -> None:
        self._lists.clear()

    # --- what the server says -------------------------------------------------------------------

    def _on_answer(self, message: Message, said: Said) -> None:
        client = self.client
        match said:
            case Accepted():
                self._on_accepted(message, said)
            case NumberVoided() if message.id in self._given_up:
                self._soon(message)  # A late copy of what we gave up; the void itself is answered, too.
            case Settled() | NumberVoided():
                if message.fate == "waiting":
                    raise client.history.broke("answers", f"{message.id} got {said!r} while it waited for an answer")
            case OutOfOrder():
                client.world.hit("out_of_order")
                self._soon(message)
            case StaleDevices():
                client.world.hit("stale device list")
                self._lists.pop(message.to, None)
                self._lists.pop(client.person.account, None)
                if message.id in self._only and self._only[message.id] in (*said.extra, *said.rekeyed):
                    self._given_up.add(message.id)
                self._soon(message)
            case MailboxFull():
                client.world.hit("mailbox full for all")
                tries = self._tries[message.id] = self._tries.get(message.id, 0) + 1
                if tries >= TRIES_WHEN_FULL:
                    self._given_up.add(message.id)
                self._soon(message)
            case UnknownRecipient():
                client.world.hit("unknown recipient")
                self._lists.pop(message.to, None)
                self._soon(message)  # They will join.
            case IdReused() | DeadLettered():
                raise client.history.broke("answers", f"{message.id} got {said!r}")
            case Refusal() if said.retry:
                client.world.hit(type(said).__name__)
                self._soon(message)
            case _:
                raise client.history.broke("answers", f"{message.id} got {said!r}")

    def _on_accepted(self, message: Message, said: Accepted) -> None:
        client = self.client
        first = self._known.setdefault(message.id, said)
        if said.id != message.id or first != said:
            raise client.history.broke("answers", f"{message.id} was answered {said!r}, before that {first!r}")
        if message.fate != "waiting":
            client.world.hit("answered again")
            return
        if said.tag == b"":
            client.world.hit("voided")
            message.fate = "voided"
        else:
            if message.id in self._given_up:
                client.world.hit("void came too late")
            message.fate, message.at, message.version = "sent", said.at, said.list_version
            message.accepted_at = client.world.now
            self.accepted.append(message)
            if message.of is None and said.at > client.newest.get(message.to, 0):
                client.newest[message.to], client.latest[message.to] = said.at, message.id
        self.waiting[message.to, message.lane].pop(message.n, None)

    def _soon(self, message: Message) -> None:
        """Try again in a while; however many noes came, one more attempt is on its way."""
        life = self.client.life
        if self._retrying.get(message.id) == life:
            return
        self._retrying[message.id] = life

        def again() -> None:
            if life == self.client.life:
                del self._retrying[message.id]
                self._send(message)

        self.client.world.later(self.client.world.between(20, 400), again)

    # --- what did not arrive --------------------------------------------------------------------

    def on_failed(self, by: int, to: int, lane: Lane, n: int, device: int, reason: Reason) -> None:
        """Seal again for one device, a bounded number of times, if that can help."""
        if by != self.client.device or reason not in (Reason.UNDECRYPTABLE, Reason.STALE_DEVICES):
            return
        message = self.client.history.by_number[by, to, lane, n]
        tries = self._resealed[message.original, device] = self._resealed.get((message.original, device), 0) + 1
        if tries <= RESEALS:
            self.client.world.hit("re-sealed")
            self.compose(to, Lane.HIGH, of=message.original, only=device)


def seal(original: str, device: int, registration: int) -> bytes:
    """What stands for a ciphertext: only the device it was made for recognises it."""
    return f"{original}|{device:x}|{registration}".encode()


def tag_of(ident: str) -> bytes:
    return ident.encode()[-16:]
