"""The face for asyncio: one machine, one profile, one connection that comes back by itself.

    async with Client("alice.profile", servers=["ws://127.0.0.1:8080"], handle="alice") as client:
        receipt = await client.send("bob", "hello")
        await receipt.delivered()
        async for message in client.messages():
            print(message.handle, message.text)
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
from typing import Any, NamedTuple, Self, TypeVar
from weakref import WeakValueDictionary

from msgspec.structs import replace

from nightmail.e2ee.content import Content, encode_content
from nightmail.e2ee.errors import NotAsAnnounced
from nightmail.e2ee.safety import check_safety_number, safety_number
from nightmail.model.forms import ACCOUNT_MAX, NUMBER_MAX
from nightmail.model.handles import spelled
from nightmail.model.ids import account_id
from nightmail.model.words import Kind, Lane, Platform

from .devices import DeviceSeen
from .driver import Driver
from .errors import ClientError, Misused, NumberDiffers
from .events import (
    DeliveryReceipt,
    DeviceLinked,
    DeviceNotLinked,
    Event,
    MessageFailed,
    Reachable,
    ReadReceipt,
    SentAck,
)
from .handles import Receipt, settle
from .household import Guest
from .http import Http, bearer
from .limits import ClientLimits
from .linking import LinkRequest, become, begin, choose_identity, finish, token_digest
from .listeners import Listeners
from .machine import Machine
from .messages import Message, Position, Tick, answers_last
from .pairing import ERRAND as PAIRING
from .people import People, handle_in
from .pin import pin_token
from .profile import Profile
from .protection import Secret
from .route import Route
from .store import Conversation, Identity, Mark, Store
from .words import Found, spans_of, terms_of, text_of

E = TypeVar("E")


class Trust(NamedTuple):
    verified: bool
    """Safety numbers were compared, and were alike."""
    held: bool
    """The key changed since: nothing is sealed for it until the person accepts it."""
    changed_at: int
    """When it changed last; 0: never."""


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
        self._servers = servers
        self._route = Route(servers, self.limits, self._chance)
        self._handle, self._label, self._platform = spelled(handle or ""), label, platform
        self._code, self._pin = code, pin
        self._secret, self._ca_file = secret, ca_file
        self._tls = ssl.create_default_context(cafile=os.fspath(ca_file)) if ca_file else None
        self._listeners = Listeners(self.limits.events)
        self._receipts: WeakValueDictionary[str, Receipt] = WeakValueDictionary()
        self._profile: Profile | None = None
        self._driver: Driver | None = None
        self._linking: dict[int, asyncio.Future[None]] = {}
        """Device that is being linked → who waits for it."""
        self._reachable: asyncio.Future[None]

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
            machine = Machine(profile.store, identity, self.limits, self._chance)
        except BaseException:
            profile.close()
            raise
        self._reachable = asyncio.get_running_loop().create_future()
        if machine.sealed.is_reachable:
            self._reachable.set_result(None)
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

    async def keep_by(self, secret: Secret) -> None:
        """From now on this keeps the profile's key; for a new passphrase, too. The database is not written anew."""
        self._open_driver()
        assert self._profile is not None
        await asyncio.to_thread(self._profile.keep_by, secret)

    @property
    def http(self) -> Http:
        """Accounts, devices, wishes and traces, asked as this device."""
        return self._http(bearer(self.identity))

    # --- writing --------------------------------------------------------------------------------

    async def send(
        self, to: str | int, text: str | Content, *, reply_to: str = "", lane: Lane = Lane.NORMAL, life_ms: int = 0
    ) -> Receipt:
        """Queue a message; when this returns it is durable here, and will be sealed and sent whatever happens.

        `to` is a handle, or an account number; `reply_to` the id of the message it answers. Raises TooLarge;
        works offline.
        """
        content = text if isinstance(text, Content) else Content(Kind.TEXT, text, reply_to or None)
        if content.kind is Kind.CONTROL:
            raise Misused("control messages are the client's own")
        if not 0 <= life_ms <= NUMBER_MAX:
            raise Misused(f"nothing can live for {life_ms} ms")
        body, kind = encode_content(content), content.kind
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
        driver, account = self._open_driver(), self._account(peer)
        with driver.working() as machine:
            count = machine.mark_read(account, driver.clock(), messages)
        await driver.committed()
        return count

    # --- devices and people -----------------------------------------------------------------------

    async def link(self, request: LinkRequest | str) -> int:
        """Take a new device into this account, by the code it shows; its number.

        Returns when the device is listed and was told whose it is; for that it must be online as well. What is left
        goes on by itself when this is cancelled, or after a restart; and it is safe to repeat. Raises Misused.
        """
        request = LinkRequest.parse(request) if isinstance(request, str) else request
        device = await self.vouch(request)
        if (waiting := self._linking.get(device)) is not None:
            await asyncio.shield(waiting)
        return device

    async def link_here(
        self, profile: str | os.PathLike[str], label: str = "", secret: Secret | None = None
    ) -> int:  # fmt: skip
        """Make a further device of this account in another folder of this machine, from begin to end; its number."""
        request = begin(profile, self.identity.handle, label, self._platform, secret)
        device = await self.vouch(request)
        finish(profile, device, secret)
        async with Client(profile, self._servers, ca_file=self._ca_file, limits=self.limits, secret=secret) as other:
            await other.ready()
        return device

    async def migrate(self, request: LinkRequest | str) -> int:
        """Move this account to a new device, by the code it shows: the right to sign, and the history.

        Returns like `link`. When the new device has everything (`Moved`), this one sends what it still has to send,
        revokes itself and ends.
        """
        device = await self.vouch(request, hand_over=True)
        if (waiting := self._linking.get(device)) is not None:
            await asyncio.shield(waiting)
        return device

    async def vouch(self, request: LinkRequest | str, *, hand_over: bool = False) -> int:
        """The first half of `link`: have the device linked, and leave the rest to itself. Its number."""
        request = LinkRequest.parse(request) if isinstance(request, str) else request
        if request.handle != self.identity.handle:
            raise Misused(f"the device asks for {request.handle!r}, not for {self.identity.handle!r}")
        driver = self._open_driver()
        if not driver.is_primary:
            raise Misused("only the primary device of an account can link another")
        joined = await self.http.link(request.registration, request.token_digest, request.label, request.platform)
        device = int(joined.device, 16)
        self._linking.setdefault(device, asyncio.get_running_loop().create_future())
        with driver.working() as machine:
            guest = Guest(device, request.registration, request.identity, request.secret, hand_over)
            machine.invite(guest, driver.clock())
        await driver.committed()
        return device

    async def ready(self) -> None:
        """Until others can write to this device: its keys are published, and it is on its account's signed list."""
        self._open_driver()
        await asyncio.shield(self._reachable)

    async def devices(self) -> list[DeviceSeen]:
        """The devices of this account, as the server has them."""
        return [DeviceSeen.of(each) for each in (await self.http.devices())["devices"]]

    async def revoke(self, device: int) -> None:
        """Cut a device off at once. The list that no longer names it is signed by the primary device."""
        await self.http.unlink(device)
        driver = self._open_driver()
        with driver.working() as machine:
            machine.forget_own_devices()
            machine.dismiss(device, driver.clock())
            machine.sign_again(driver.clock())

    async def rename(self, device: int, label: str) -> None:
        """What a device of this account is called."""
        await self.http.relabel(device, label)

    def safety_number(self, peer: str | int) -> str:
        """60 digits that both see alike if nobody stands between. Raises Misused if a key is not known yet."""
        return self._numbered_key(self._account(peer))[0]

    async def verify(self, peer: str | int, number: str) -> None:
        """This safety number was compared, and is alike on both sides. From now on a change is asked about.

        `number` is what `safety_number` gave and the person saw; spaces do not matter. Raises NumberDiffers if it is
        another one by now: the person has compared a key, and agrees to no other. Raises Misused.
        """
        await self._agree(peer, number, verified=True)

    async def accept(self, peer: str | int, number: str) -> None:
        """The person agrees to a key that changed, and has this number: what waits is sealed for it.

        Raises as `verify` does.
        """
        await self._agree(peer, number, verified=False)

    def trust(self, peer: str | int) -> Trust:
        """What the person has said about a peer's key."""
        row = self._store.trusted(self._account(peer))
        return Trust(row.verified, row.held, row.changed_at) if row else Trust(False, False, 0)

    def is_verified(self, peer: str | int) -> bool:
        return self.trust(peer).verified

    async def _agree(self, peer: str | int, number: str, *, verified: bool) -> None:
        driver, account = self._open_driver(), self._account(peer)
        current, key = self._numbered_key(account)
        try:
            check_safety_number(current, number)
        except NotAsAnnounced:
            raise NumberDiffers from None
        with driver.working() as machine:
            if not machine.agree(account, driver.clock(), key=key, verified=verified):
                raise NumberDiffers
        await driver.committed()

    def _numbered_key(self, theirs: int) -> tuple[str, bytes]:
        """The safety number with somebody, and the key of theirs that it is about."""
        ours = self.identity.account
        with self._open_driver().working() as machine:
            keys = [machine.account_key(account) for account in (ours, theirs)]
        if not keys[0] or not keys[1]:
            raise Misused("nobody's key is known here yet: write to them first")
        return safety_number(ours, keys[0], theirs, keys[1]), keys[1]

    # --- looking --------------------------------------------------------------------------------

    def history(self, peer: str | int, limit: int = 100, before: Message | Position | None = None) -> list[Message]:
        """The newest messages of a conversation (or those before one of them), oldest first, answers behind what they
        answer."""
        store, account = self._store, self._account(peer)
        before = before.position if isinstance(before, Message) else before
        name = handle_in(store, account)
        return answers_last([replace(message, handle=name) for message in store.history(account, limit, before)])

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
            case DeviceLinked():
                settle(self._linking.pop(event.device, None))
            case DeviceNotLinked():
                settle(self._linking.pop(event.device, None), Misused(f"the device was not linked: {event.why}"))
            case Reachable():
                settle(self._reachable)
            case _:
                pass
        self._listeners.tell(event)

    def _move(self, message_id: str, state: Tick, reason: str = "") -> None:
        if (receipt := self._receipts.get(message_id)) is not None:
            receipt.move(state, reason)

    def _end(self, error: ClientError) -> None:
        """Nothing more will be told: let go of everyone who waits."""
        for waiting in (*self._linking.values(), self._reachable):
            settle(waiting, error)
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
        if not identity.device and store.errand(PAIRING) is not None:
            return become(store, await self._find_number(identity))
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

    async def _find_number(self, identity: Identity) -> int:
        """Until the primary device has vouched for this one: the number it was given."""
        http, digest = self._http(""), token_digest(identity)
        while True:
            joined = await http.find_device(identity.handle, identity.registration, digest)
            if joined is not None:
                return int(joined.device, 16)
            await asyncio.sleep(self.limits.find_ms / 1_000)

    def _http(self, authorization: str) -> Http:
        addresses = [address.http for address in self._route.addresses]
        return Http(addresses, authorization=authorization, tls=self._tls, limits=self.limits)

    def _account(self, peer: str | int) -> int:
        if isinstance(peer, str):
            return account_id(spelled(peer))
        if not 0 < peer <= ACCOUNT_MAX:
            raise Misused(f"there is no account {peer:x}")
        return peer

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
