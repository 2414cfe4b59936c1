"""The client for asyncio: one machine, one profile, one connection that is opened again when it is lost.

    async with Client("alice.profile", servers=["ws://127.0.0.1:8080"], handle="alice") as client:
        receipt = await client.send("bob", "hello")
        await receipt.delivered()
        async for message in client.messages():
            print(message.handle, message.text)
            await client.read(message.peer)

Knows:   one profile, and which part of the client does what.
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

from msgspec.structs import replace

from nightmail.client.backup.automatic import BackupClient, Backups
from nightmail.client.link.driver import Driver
from nightmail.client.link.http import Http, bearer
from nightmail.client.link.route import ServerRoute
from nightmail.client.machine.machine import Machine
from nightmail.client.own_devices.link_request import LinkRequest, begin, finish
from nightmail.client.own_devices.registration import Applicant, join
from nightmail.client.profile.profile import Profile
from nightmail.client.profile.protection import Secret
from nightmail.client.profile.settings import limits_of
from nightmail.client.store.port import Store
from nightmail.client.store.rows import Conversation, Identity, ReadMark
from nightmail.client.store.search import Found, spans_of, terms_of, text_of
from nightmail.client.timers.changes import timer_in
from nightmail.e2ee.content import Content
from nightmail.model.forms import ACCOUNT_MAX
from nightmail.model.group_chain import is_group
from nightmail.model.handles import spellings
from nightmail.model.ids import MESSAGE_ID, account_ids, account_of
from nightmail.model.words import Kind, Lane, Platform

from .addressees import Addressee, addressee_in, group_in_text, is_group_text
from .contacts import Contacts, handle_in
from .devices import OwnDevice, OwnDevices
from .errors import ClientError, HttpError, Misused
from .events import Event
from .groups.group import Group
from .limits import ClientLimits
from .listeners import EventIterator, Listeners
from .media.blob_http import BlobHttp
from .media.jobs import MediaJobs
from .media.opened_file import KeptFiles
from .media.worker import MediaWorker
from .media_client import MediaClient
from .messages import Message, Position, answers_last
from .presence_client import PresenceClient
from .receipt import Receipt
from .safety import SafetyNumbers, Trust
from .waiters import Waiters

E = TypeVar("E")


class Client(MediaClient, PresenceClient, BackupClient):
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
        """`handle` is registered if the profile is new; `ca_file` holds the certificates that vouch for a wss server.

        `limits` replaces what the profile's own settings say.
        `code` and `pin` prove that the handle is yours, if the server asks for it.
        `secret` protects the profile's key (`profile/protection.py`): a passphrase is needed each time, the others
        once.
        """
        self._path = Path(profile).expanduser()
        self.limits = limits or limits_of(self._path)
        self._chance = SystemRandom()
        self._servers = servers
        self._route = ServerRoute(servers, self.limits, self._chance)
        self._applicant = Applicant(handle, label, platform, code, pin)
        self._secret, self._ca_file = secret, ca_file
        self._tls = ssl.create_default_context(cafile=os.fspath(ca_file)) if ca_file else None
        self._listeners = Listeners(self.limits.events)
        self._waiters = Waiters()
        self._profile: Profile | None = None
        self._driver: Driver | None = None

    def __repr__(self) -> str:
        return f"<Client {self._path}>"

    # --- life -----------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Open the profile, register it if it is new, and begin to connect. Only registering waits for the network."""
        if self._profile is not None:
            raise Misused("a client is opened once")
        self._profile = profile = Profile(self._path, self._secret)
        try:
            identity = await join(profile, self._applicant, self._http(""), self.limits.find_ms)
            machine = Machine(profile.store, identity, self.limits, self._chance)
        except BaseException:
            profile.close()
            raise
        self._waiters.begin(is_reachable=machine.sealer.is_reachable)
        self._driver = Driver(machine, self._route, self._tls, self.limits, self._tell, self._end)
        self._people = Contacts(profile.store, self._driver, self._http(bearer(identity)))
        blobs = BlobHttp(self._http_addresses, bearer(identity), self._tls, self.limits)
        self._backups = Backups(profile.store, self._driver, self._path, self._tell, blobs, self.limits)
        jobs = MediaJobs(profile.store, self._driver, blobs, KeptFiles(self._path), self.limits, self._tell)
        self._media = MediaWorker(jobs, self._driver, self.limits)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Disconnect, commit what is open, release the profile. May be called again."""
        driver, self._driver = self._driver, None
        if driver is None or self._profile is None:
            return
        try:
            await self._backups.stop()
            await self._media.stop()
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
        """Protect the profile's key with this secret from now on. The database is not written again."""
        self._open_driver()
        assert self._profile is not None
        await asyncio.to_thread(self._profile.keep_by, secret)

    @property
    def http(self) -> Http:
        """Accounts, devices, settings and traces, with this device's credentials."""
        return self._http(bearer(self.identity))

    # --- writing --------------------------------------------------------------------------------

    async def send(
        self, to: str | int | Group, text: str | Content, *, reply_to_message_id: str = "", lane: Lane = Lane.NORMAL,
        life_ms: int | None = None, mentions: Sequence[str | int] = (),
    ) -> Receipt:  # fmt: skip
        """Queue a message. When this returns, it is durable here, and will be sealed and sent. Works offline.

        `to` is a handle, an account number, or a group ("group:" and its name); `reply_to_message_id` the message that
        this one answers; `mentions` the members of a group whom it is meant for: then it goes in the high lane. Only
        those who read it can tell. It disappears as the timer of the conversation says, or after `life_ms` (0: never).
        Raises TooLarge, Misused, GroupError.
        """
        content = text if isinstance(text, Content) else Content(Kind.TEXT, text)
        if reply_to_message_id:
            content = content._replace(reply_to=reply_to_message_id)
        if content.reply_to is not None and not MESSAGE_ID.match(content.reply_to):
            raise Misused("a reply names the message it answers by its id, and that is no id of a message")
        if content.kind is Kind.CONTROL:
            raise Misused("control messages are the client's own")
        driver = self._open_driver()
        peer, handle = await self._whom(to)
        if mentions:
            content, lane = content._replace(mentions=tuple(map(self._account, mentions))), Lane.HIGH
        with driver.working() as machine:
            if handle:
                machine.learn_handle(peer, handle, driver.clock())
            message = machine.write(peer, content, driver.clock(), lane=lane, life_ms=life_ms)
        receipt = self._waiters.follow(Receipt(message.id))
        await driver.committed()
        return receipt

    def timer(self, peer: str | int | Group) -> int:
        """How many milliseconds after they were read messages of this conversation disappear; 0: never."""
        account = self._account(peer)
        return self.group(account).settings.timer_ms if is_group(account) else timer_in(self._store, account)

    async def set_timer(self, peer: str | int, life_ms: int) -> Receipt:
        """Let messages of this conversation disappear, 30 s to 7 days after they were read; 0: no longer.

        It holds for what is written from now on, by both people: they are told by a message. Works offline. Raises
        Misused.
        """
        driver = self._open_driver()
        account, handle = await self._whom(peer)
        if is_group(account):
            raise Misused("the timer of a group is one of its settings: use `change_group`")
        with driver.working() as machine:
            if handle:
                machine.learn_handle(account, handle, driver.clock())
            change = machine.set_timer(account, life_ms, driver.clock())
        receipt = self._waiters.follow(Receipt(change.id))
        await driver.committed()
        return receipt

    def receipt(self, message_id: str) -> Receipt:
        """The receipt of an earlier message of this account."""
        if (known := self._waiters.receipt(message_id)) is not None:
            return known
        message = self._store.message(message_id)
        if message is None or not message.own:
            raise Misused("no message of this account has that id")
        return self._waiters.follow(Receipt(message_id, message.state, message.reason))

    async def give_up(self, message_id: str) -> bool:
        """Take a message back that the server does not have; False if it no longer waits."""
        driver = self._open_driver()
        with driver.working() as machine:
            waits = machine.give_up(message_id, driver.clock())
        await driver.committed()
        return waits

    async def read(self, peer: str | int | Group, messages: Collection[str] | None = None) -> int:
        """Mark everything from a peer as read, or these messages; how many became so. Sent until it is confirmed."""
        driver, account = self._open_driver(), self._account(peer)
        with driver.working() as machine:
            count = machine.mark_read(account, driver.clock(), messages)
        await driver.committed()
        return count

    async def confirmed(self) -> None:
        """Wait until the server has confirmed what was received and read here: the senders' receipts are under way."""
        await self._open_driver().confirmed()

    # --- own devices ----------------------------------------------------------------------------

    async def link(self, request: LinkRequest | str) -> int:
        """Link a new device to this account, by the code that it shows; its number.

        Returns when the device is listed and provisioned; for that it must be online, too. If this is cancelled, or
        the process restarts, linking goes on by itself. It is safe to repeat. Raises Misused, also if this is not the
        account's primary device.
        """
        return await self._devices.link(request)

    async def link_here(
        self, profile: str | os.PathLike[str], label: str = "", secret: Secret | None = None
    ) -> int:  # fmt: skip
        """Link a new device in another folder of this computer, from beginning to end; its number."""
        self._devices.check_may_link()  # before there is a profile that nobody will link
        request = begin(profile, self.identity.handle, label, self._applicant.platform, secret)
        device = await self.vouch(request)
        finish(profile, device, secret)
        async with Client(profile, self._servers, ca_file=self._ca_file, limits=self.limits, secret=secret) as other:
            await other.ready()
        return device

    async def migrate(self, request: LinkRequest | str) -> int:
        """Move this account to a new device, by the code that it shows: the right to sign, and the history.

        Returns like `link`. When the new device has everything (`Moved`), this one sends what it still has to send,
        revokes itself and ends.
        """
        return await self._devices.link(request, hand_over=True)

    async def vouch(self, request: LinkRequest | str, *, hand_over: bool = False) -> int:
        """The first half of `link`: register the device at the server. The rest goes on by itself. Its number."""
        return await self._devices.vouch(request, hand_over=hand_over)

    @property
    def is_primary(self) -> bool:
        """Whether this device signs the account's device list, and so can link others."""
        return self._open_driver().is_primary

    async def ready(self) -> None:
        """Wait until others can write to this device: its keys are published, and the account's list names it."""
        self._open_driver()
        await self._waiters.reachable()

    async def devices(self) -> list[OwnDevice]:
        """The devices of this account, as the server has them."""
        return await self._devices.all()

    async def revoke(self, device: int) -> None:
        """Disconnect a device for good, at once. The primary device signs the list that no longer names it."""
        await self._devices.revoke(device)

    async def rename(self, device: int, label: str) -> None:
        """Change the label of a device of this account."""
        await self._devices.rename(device, label)

    @property
    def _devices(self) -> OwnDevices:
        return OwnDevices(self.identity.handle, self._open_driver(), self.http, self._waiters)

    # --- whom to trust --------------------------------------------------------------------------

    def safety_number(self, peer: str | int) -> str:
        """60 digits that are the same on both sides if nobody intercepts. Raises Misused if a key is not known yet."""
        return self._safety.number(self._account(peer))

    async def verify(self, peer: str | int, number: str) -> None:
        """The person compared this safety number: it is the same on both sides. From now on a new key needs consent.

        `number` is what `safety_number` returned and the person saw; spaces do not matter. Raises NumberDiffers if
        the number is another one by now: the person agreed to one key, and to no other. Raises Misused.
        """
        await self._safety.agree(self._account(peer), number, verified=True)

    async def accept(self, peer: str | int, number: str) -> None:
        """The person accepts a changed key, which has this safety number. What waits is sealed for it.

        Raises as `verify` does.
        """
        await self._safety.agree(self._account(peer), number, verified=False)

    def trust(self, peer: str | int) -> Trust:
        """What the person said about a peer's key."""
        return self._safety.trust(self._account(peer))

    def is_verified(self, peer: str | int) -> bool:
        return self.trust(peer).verified

    @property
    def _safety(self) -> SafetyNumbers:
        return SafetyNumbers(self.identity.account, self._store, self._open_driver())

    # --- looking --------------------------------------------------------------------------------

    def history(
        self, peer: str | int | Group, limit: int = 100, before: Message | Position | None = None
    ) -> list[Message]:
        """The newest messages of a conversation, or those before one of them; oldest first, a reply after what it
        answers."""
        store, account = self._store, self._account(peer)
        before = before.position if isinstance(before, Message) else before
        return answers_last([self._named(message) for message in store.history(account, limit, before)])

    def conversations(self) -> list[Conversation]:
        return self._store.conversations()

    def unread(self, peer: str | int | Group | None = None) -> int:
        """How many messages are not marked as read, of one peer or of all."""
        account = None if peer is None else self._account(peer)
        return len({row.id for row in self._store.marked(ReadMark.UNREAD, account)})

    def search(self, text: str, peer: str | int | Group | None = None, limit: int = 50) -> list[Found]:
        """The newest messages with all of these words, or words that begin with them; with one peer or with all."""
        store, terms = self._store, terms_of(text)
        found = store.search(terms, None if peer is None else self._account(peer), limit)
        return [Found(self._named(message), spans_of(text_of(message) or "", terms)) for message in found]

    def _named(self, message: Message) -> Message:
        person = message.peer if message.group is None else account_of(message.by)
        own = message.group is not None and message.own
        return replace(message, handle=self.identity.handle if own else handle_in(self._store, person))

    @property
    def people(self) -> Contacts:
        """Contacts and the block list."""
        self._open_driver()
        return self._people

    # --- listening ------------------------------------------------------------------------------

    def on(self, kind: type[E]) -> Callable[[Callable[[E], Awaitable[None] | None]], Callable[[E], Any]]:
        """Call a function (plain or async) for every event of a kind: `@client.on(Message)`."""
        return self._listeners.on(kind)

    def messages(self) -> AsyncIterator[Message]:
        """Messages of others, as they come. Ends when the client does; own copies are told by `on(Message)`.

        Includes what came before the first call.
        """
        return self._listeners.messages()

    def events(self) -> EventIterator[Event]:
        """Every event from now on."""
        return self._listeners.events()

    # --- inside ---------------------------------------------------------------------------------

    def _tell(self, event: Event) -> None:
        self._waiters.tell(event)
        self._listeners.tell(event)
        self._media.hear(event)

    def _end(self, error: ClientError) -> None:
        """No more events will come."""
        self._waiters.end(error)
        self._listeners.end(None if isinstance(error, Misused) else error)

    def _http(self, authorization: str) -> Http:
        return Http(self._http_addresses, authorization=authorization, tls=self._tls, limits=self.limits)

    @property
    def _http_addresses(self) -> list[str]:
        return [address.http for address in self._route.addresses]

    def _account(self, peer: str | int | Group) -> int:
        if isinstance(peer, Group):
            return peer.id
        if isinstance(peer, str):
            if is_group_text(peer):
                return group_in_text(self._store, peer)
            return addressee_in(self._store, peer).account
        if not 0 < peer <= ACCOUNT_MAX:
            raise Misused(f"there is no account {peer:x}")
        return peer

    async def _find(self, text: str) -> Addressee:
        """The account to write to. Only the server knows which one is meant where a text may mean two handles."""
        if is_group_text(text):
            return Addressee(group_in_text(self._store, text), "", is_known=True)
        found = addressee_in(self._store, text)
        if not found.is_known and self.online and found.handle != text:
            try:
                said = await self.http.account(text)
            except HttpError:
                return found  # perhaps there is no such account: the send will say so
            ids = {f"{account:x}": account for account in account_ids(said.handle)}
            if said.handle in spellings(text) and said.account in ids:
                return Addressee(ids[said.account], said.handle, is_known=False)
        return found

    @property
    def _store(self) -> Store:
        self._open_driver().catch_up()
        assert self._profile is not None
        return self._profile.store

    def _open_driver(self) -> Driver:
        if self._driver is None:
            raise Misused("the client is not open: use `async with`")
        return self._driver
