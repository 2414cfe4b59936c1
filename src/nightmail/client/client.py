"""The face for asyncio: one machine, one profile, one connection that comes back by itself.

    async with Client("alice.profile", servers=["ws://127.0.0.1:8080"], handle="alice") as client:
        receipt = await client.send("bob", b"hello")
        await receipt.delivered()
        async for message in client.messages():
            print(message.handle, message.body)
            await client.read(message.peer)

Knows:   one profile, and who waits for what.
Never:   decides anything about a message: the machine does. A commit is one sync of a local file, on the loop's
         thread; an app that cannot afford that uses sync.py, which has a thread of its own.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from pathlib import Path
from random import SystemRandom
from types import TracebackType
from typing import Any, Self, TypeVar
from weakref import WeakValueDictionary

from msgspec.structs import replace

from nightmail.model.handles import spelled
from nightmail.model.ids import account_id
from nightmail.model.words import Kind, Lane, Platform

from .driver import Driver
from .errors import ClientError, Misused
from .events import DeliveryReceipt, Event, MessageFailed, ReadReceipt, SentAck
from .handles import Receipt
from .http import Http, bearer
from .limits import ClientLimits
from .linking import LinkRequest, choose_identity
from .listeners import Listeners
from .machine import Machine
from .messages import Message, Position, Tick
from .people import People, handle_in
from .pin import pin_token
from .profile import Profile
from .protection import Secret
from .route import Route
from .sealer import Sealer
from .store import Conversation, Identity, Mark, Store
from .words import Found, spans_of, terms_of, text_of

E = TypeVar("E")


class Client:
    def __init__(
        self,
        profile: str | os.PathLike[str],
        servers: Sequence[str],
        *,
        handle: str = "",
        label: str = "",
        platform: Platform = Platform.CLI,
        ca_file: str | os.PathLike[str] | None = None,
        sealer: Sealer | None = None,
        limits: ClientLimits | None = None,
        secret: Secret | None = None,
        code: str = "",
        pin: str = "",
    ) -> None:
        """`handle` is registered if the profile is new; `ca_file` names who may vouch for the server (wss).

        `code` and `pin` show that it is yours, where the server asks for it.
        `secret` keeps the profile's key (protection.py): a passphrase is needed each time, the others once.
        """
        self.limits = limits or ClientLimits()
        self._path = Path(profile).expanduser()
        self._chance = SystemRandom()
        self._route = Route(servers, self.limits, self._chance)
        self._handle, self._label, self._platform, self._sealer = spelled(handle or ""), label, platform, sealer
        self._code, self._pin = code, pin
        self._secret = secret
        self._tls = ssl.create_default_context(cafile=os.fspath(ca_file)) if ca_file else None
        self._listeners = Listeners(self.limits.events)
        self._receipts: WeakValueDictionary[str, Receipt] = WeakValueDictionary()
        self._profile: Profile | None = None
        self._driver: Driver | None = None

    def __repr__(self) -> str:
        return f"<Client {self._path}>"

    # --- life -----------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Open the profile, register if it is new, and begin to connect. Does not wait for the network otherwise."""
        if self._profile is not None:
            raise Misused("a client is opened once")
        self._profile = profile = Profile(self._path, self._secret)
        try:
            identity = await self._join(profile)
            machine = Machine(profile.store, identity, self._sealer, self.limits, self._chance)
        except BaseException:
            profile.close()
            raise
        self._driver = Driver(machine, self._route, self._tls, self.limits, self._tell, self._end)
        self._people = People(profile.store, self._driver, self._http(bearer(identity)))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Leave the server, write down what is open, let go of the profile. May be called again."""
        driver, self._driver = self._driver, None
        if driver is None or self._profile is None:
            return
        try:
            await driver.stop()
            await self._listeners.close()
        finally:
            self._profile.close()

    @property
    def identity(self) -> Identity:
        identity = self._store.identity()
        assert identity is not None
        return identity

    @property
    def online(self) -> bool:
        return self._driver is not None and self._driver.online

    @property
    def http(self) -> Http:
        """Accounts, devices, wishes and traces, asked as this device."""
        return self._http(bearer(self.identity))

    # --- writing --------------------------------------------------------------------------------

    async def send(
        self, to: str | int, body: bytes, *, kind: Kind = Kind.TEXT, lane: Lane = Lane.NORMAL, life_ms: int = 0
    ) -> Receipt:
        """Queue a message; when this returns it is durable here, and will be sent whatever happens.

        `to` is a handle, or an account number. Raises TooLarge; works offline.
        """
        peer = self._account(to)
        driver = self._open_driver()
        with driver.working() as machine:
            if isinstance(to, str):
                self._learn(peer, spelled(to))
            message = machine.compose(peer, body, driver.clock(), kind=kind, lane=lane, life_ms=life_ms)
        receipt = self._receipts[message.id] = Receipt(message.id)
        await driver.committed()
        return receipt

    def receipt(self, message_id: str) -> Receipt:
        """The receipt of an earlier message of this account."""
        if (known := self._receipts.get(message_id)) is not None:
            return known
        message = self._store.message(message_id)
        if message is None or not message.own:
            raise Misused("no message of this account has that id")
        receipt = self._receipts[message_id] = Receipt(message_id, message.state, message.reason)
        return receipt

    async def give_up(self, message_id: str) -> bool:
        """Take a message back if the server has not got it; False: it no longer waits."""
        driver = self._open_driver()
        with driver.working() as machine:
            waits = machine.give_up(message_id, driver.clock())
        await driver.committed()
        return waits

    async def read(self, peer: str | int, messages: Collection[str] | None = None) -> int:
        """Mark everything from a peer as read, or these ids; how many became so. Told until it is known."""
        driver = self._open_driver()
        with driver.working() as machine:
            count = machine.mark_read(self._account(peer), driver.clock(), messages)
        await driver.committed()
        return count

    async def link(self, request: LinkRequest) -> int:
        """Vouch for a new device of this account, and list it, so that others seal for it; its number.

        Safe to repeat. The list is not signed yet: that comes with sealing.
        """
        if request.handle != self.identity.handle:
            raise Misused(f"the device asks for {request.handle!r}, not for {self.identity.handle!r}")
        joined = await self.http.link(request.registration, request.token_digest, request.label, request.platform)
        device = int(joined.device, 16)
        account = await self.http.account(self.identity.handle)
        listed = [int(known, 16) for known in account.devices]
        if device not in listed:
            await self.http.list_devices(account.list_version + 1, [*listed, device], b"")
        with self._open_driver().working() as machine:
            machine.forget_own_devices()
        return device

    # --- looking --------------------------------------------------------------------------------

    def history(self, peer: str | int, limit: int = 100, before: Message | Position | None = None) -> list[Message]:
        """The newest messages of a conversation (or those before one of them), oldest first."""
        store, account = self._store, self._account(peer)
        before = before.position if isinstance(before, Message) else before
        name = handle_in(store, account)
        return [replace(message, handle=name) for message in store.history(account, limit, before)]

    def conversations(self) -> list[Conversation]:
        return self._store.conversations()

    def unread(self, peer: str | int | None = None) -> int:
        """How many messages nobody has marked as read, of one peer or of all."""
        account = None if peer is None else self._account(peer)
        return len({row.id for row in self._store.marked(Mark.UNREAD, account)})

    def search(self, text: str, peer: str | int | None = None, limit: int = 50) -> list[Found]:
        """The newest messages that have all of these words (or words that begin so), with one peer or with all."""
        store, terms = self._store, terms_of(text)
        found = store.search(terms, None if peer is None else self._account(peer), limit)
        named = [replace(message, handle=handle_in(store, message.peer)) for message in found]
        return [Found(message, spans_of(text_of(message) or "", terms)) for message in named]

    @property
    def people(self) -> People:
        """Contacts and the block list."""
        self._open_driver()
        return self._people

    # --- listening ------------------------------------------------------------------------------

    def on(self, kind: type[E]) -> Callable[[Callable[[E], Awaitable[None] | None]], Callable[[E], Any]]:
        """Call a function (plain or async) for every event of a kind: `@client.on(Message)`."""
        return self._listeners.on(kind)

    def messages(self) -> AsyncIterator[Message]:
        """What others write, as it comes. Ends when the client does; own copies are told by `on(Message)`.

        What came before the first call is not missed.
        """
        return self._listeners.messages()

    def events(self) -> AsyncIterator[Event]:
        """Everything, from now on."""
        return self._listeners.events()

    # --- what the machine says ------------------------------------------------------------------

    def _tell(self, event: Event) -> None:
        match event:
            case SentAck():
                self._move(event.message_id, Tick.SENT)
            case DeliveryReceipt() if event.state is not Tick.FAILED:
                self._move(event.message_id, event.state)
            case ReadReceipt():
                for message_id in event.messages:
                    self._move(message_id, Tick.READ)
            case MessageFailed():
                self._move(event.message_id, Tick.FAILED, event.reason)
            case _:
                pass
        self._listeners.tell(event)

    def _move(self, message_id: str, state: Tick, reason: str = "") -> None:
        if (receipt := self._receipts.get(message_id)) is not None:
            receipt.move(state, reason)

    def _end(self, error: ClientError) -> None:
        """Nothing more will be told: let go of everyone who waits."""
        for receipt in list(self._receipts.values()):
            receipt.abandon(error)
        self._listeners.end(None if isinstance(error, Misused) else error)

    # --- small things ---------------------------------------------------------------------------

    async def _join(self, profile: Profile) -> Identity:
        store = profile.store
        identity = store.identity()
        if identity is None:
            if not self._handle:
                raise Misused(f"the profile {self._path} is empty: say which handle to register")
            # Chosen and saved before it is said: whoever loses the answer asks again and gets the same device.
            identity = choose_identity(self._handle)
            store.put_identity(identity)
            store.commit()
        if self._handle and identity.handle != self._handle:
            raise Misused(f"the profile {self._path} belongs to {identity.handle!r}, not to {self._handle!r}")
        if not identity.device:
            if not self._handle:
                raise Misused(f"the profile {self._path} was never finished: register its handle, or link it")
            token = await asyncio.to_thread(pin_token, identity.account, self._pin) if self._pin else b""
            joined = await self._http("").register(
                identity, self._label, self._platform, code=self._code, pin_token=token
            )
            identity = replace(identity, device=int(joined.device, 16))
            store.put_identity(identity)
            store.commit()
        return identity

    def _http(self, authorization: str) -> Http:
        addresses = [address.http for address in self._route.addresses]
        return Http(addresses, authorization=authorization, tls=self._tls, limits=self.limits)

    def _account(self, peer: str | int) -> int:
        return account_id(spelled(peer)) if isinstance(peer, str) else peer

    def _learn(self, peer: int, handle: str) -> None:
        store = self._store
        conversation = store.conversation(peer)
        if conversation.handle != handle:
            store.put_conversation(replace(conversation, handle=handle))

    @property
    def _store(self) -> Store:
        self._open_driver()
        assert self._profile is not None
        return self._profile.store

    def _open_driver(self) -> Driver:
        if self._driver is None:
            raise Misused("the client is not open: use `async with`")
        return self._driver
