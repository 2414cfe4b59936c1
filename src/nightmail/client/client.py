"""The face for asyncio: one machine, one profile, one connection that comes back by itself.

    async with Client("alice.profile", servers=["ws://127.0.0.1:8080"], handle="alice") as client:
        receipt = await client.send("bob", b"hello")
        await receipt.delivered()
        async for message in client.messages():
            print(message.handle, message.body)
            await client.read(message.peer)

Knows:   when the machine must be asked, and who waits for what it says.
Never:   decides anything about a message: the machine does. All machine calls happen on the loop's thread; what
         happens in one pass of the loop is committed together, so a hundred sends at once cost one sync.
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

from nightmail.model.ids import account_id
from nightmail.model.words import Kind, Lane, Platform

from .clock import Clock
from .connection import Connection
from .errors import ClientError, Misused, Stopped
from .events import DeliveryReceipt, Ended, Event, MessageFailed, ReadReceipt, Retrying, SentAck
from .handles import Receipt
from .http import Http, bearer
from .limits import ClientLimits
from .listeners import Listeners
from .machine import Machine
from .messages import Message, Position, Tick
from .profile import Profile
from .route import Route
from .sealer import Sealer
from .store import Conversation, Identity, Mark

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
    ) -> None:
        """`handle` is registered if the profile is new; `ca_file` names who may vouch for the server (wss)."""
        self.limits = limits or ClientLimits()
        self._path = Path(profile).expanduser()
        self._chance = SystemRandom()
        self._route = Route(servers, self.limits, self._chance)
        self._handle, self._label, self._platform, self._sealer = handle, label, platform, sealer
        self._tls = ssl.create_default_context(cafile=os.fspath(ca_file)) if ca_file else None
        self._clock = Clock()
        self._listeners = Listeners(self.limits.events)
        self._receipts: WeakValueDictionary[str, Receipt] = WeakValueDictionary()
        self._profile: Profile | None = None
        self._machine: Machine | None = None
        self._connection: Connection | None = None
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._turn_handle: asyncio.Handle | None = None
        self._committing: asyncio.Future[None] | None = None
        self._ended: ClientError | None = None

    def __repr__(self) -> str:
        return f"<Client {self._path}>"

    # --- life -----------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Open the profile, register if it is new, and begin to connect. Does not wait for the network otherwise."""
        if self._profile is not None:
            raise Misused("this client is open already")
        self._profile = profile = Profile(self._path)
        try:
            identity = await self._join(profile)
            self._machine = Machine(profile.store, identity, self._sealer, self.limits, self._chance)
        except BaseException:
            profile.close()
            self._profile = None
            raise
        self._ended = None
        self._task = asyncio.create_task(self._run(), name=f"nightmail client {identity.handle}")
        self._task.add_done_callback(self._on_done)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Leave the server, write down what is open, let go of the profile. May be called again."""
        task, self._task = self._task, None
        if task:
            task.cancel()
            await asyncio.wait([task])
        for handle in (self._timer, self._turn_handle):
            if handle:
                handle.cancel()
        self._timer = self._turn_handle = None
        if self._machine and self._ended is None:
            self._machine.settle()
        self._end(Misused("the client is closed"))
        await self._listeners.close()
        if self._profile:
            self._profile.close()
        self._profile = self._machine = None

    @property
    def identity(self) -> Identity:
        identity = self._open_profile().store.identity()
        assert identity is not None
        return identity

    @property
    def online(self) -> bool:
        return self._machine is not None and self._machine.online

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
        machine, peer = self._open_machine(), self._account(to)
        if isinstance(to, str):
            self._learn(peer, to)
        message = machine.compose(peer, body, self._clock(), kind=kind, lane=lane, life_ms=life_ms)
        receipt = self._receipts[message.id] = Receipt(message.id)
        await self._committed()
        return receipt

    def receipt(self, message_id: str) -> Receipt:
        """The receipt of an earlier message of this account."""
        if (known := self._receipts.get(message_id)) is not None:
            return known
        message = self._open_profile().store.message(message_id)
        if message is None or not message.own:
            raise Misused("no message of this account has that id")
        receipt = self._receipts[message_id] = Receipt(message_id, message.state, message.reason)
        return receipt

    async def give_up(self, message_id: str) -> bool:
        """Take a message back if the server has not got it; False: it no longer waits."""
        waits = self._open_machine().give_up(message_id, self._clock())
        await self._committed()
        return waits

    async def read(self, peer: str | int, messages: Collection[str] | None = None) -> int:
        """Mark everything from a peer as read, or these ids; how many became so. Told until it is known."""
        count = self._open_machine().mark_read(self._account(peer), self._clock(), messages)
        await self._committed()
        return count

    # --- looking --------------------------------------------------------------------------------

    def history(self, peer: str | int, limit: int = 100, before: Message | Position | None = None) -> list[Message]:
        """The newest messages of a conversation (or those before one of them), oldest first."""
        store, account = self._open_profile().store, self._account(peer)
        before = before.position if isinstance(before, Message) else before
        name = store.conversation(account).handle or f"{account:x}"
        return [replace(message, handle=name) for message in store.history(account, limit, before)]

    def conversations(self) -> list[Conversation]:
        return self._open_profile().store.conversations()

    def unread(self, peer: str | int | None = None) -> int:
        """How many messages nobody has marked as read, of one peer or of all."""
        account = None if peer is None else self._account(peer)
        return len({row.id for row in self._open_profile().store.marked(Mark.UNREAD, account)})

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

    # --- the machine's turns --------------------------------------------------------------------

    def _turn(self) -> None:
        """Commit what happened, then let out what follows from it."""
        self._turn_handle = None
        machine = self._machine
        if machine is None or self._ended is not None:
            return
        try:
            frames, events = machine.frames(), machine.events()
        except ClientError as error:
            # Nothing that is not on the disk may be told or acknowledged: a new start finds out what is.
            self._end(error)
            if self._task:
                self._task.cancel()
            return
        committing, self._committing = self._committing, None
        if committing and not committing.done():
            committing.set_result(None)
        if self._connection:
            self._connection.write(frames)
            if machine.hangup:
                self._connection.hang_up()
        for event in events:
            self._tell(event)
        self._arm(machine.deadline())

    def _soon(self) -> None:
        if self._turn_handle is None:
            self._turn_handle = asyncio.get_running_loop().call_soon(self._turn)

    async def _committed(self) -> None:
        """Until what was just asked of the machine is durable."""
        if self._committing is None:
            self._committing = asyncio.get_running_loop().create_future()
        self._soon()
        await asyncio.shield(self._committing)

    def _arm(self, deadline: int | None) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if deadline is not None:
            wait = max(0, deadline - self._clock()) / 1_000
            self._timer = asyncio.get_running_loop().call_later(wait, self._tick)

    def _tick(self) -> None:
        self._timer = None
        if self._machine and self._ended is None:
            self._machine.tick(self._clock())
            self._turn()

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
            case Ended():
                self._ended = Stopped(event.code, event.sentence)
            case _:
                pass
        self._listeners.tell(event)

    def _move(self, message_id: str, state: Tick, reason: str = "") -> None:
        if (receipt := self._receipts.get(message_id)) is not None:
            receipt.move(state, reason)

    # --- the connection -------------------------------------------------------------------------

    async def _run(self) -> None:
        """Connect, live, lose it, wait, again; until closed, or told never to come back."""
        machine = self._open_machine()
        address = self._route.addresses[0]
        self._arm(machine.deadline())
        while True:
            began = self._clock()
            connection = Connection(address.socket, self._tls, self.limits)
            await connection.open()
            if connection.is_open:
                self._connection = connection
                machine.connected(self._clock())
                self._turn()
                try:
                    await connection.live(self._receive)
                finally:
                    self._connection = None
                    machine.closed(connection.code, self._clock(), connection.why)
                    self._turn()
            if self._ended is not None:
                raise self._ended
            goodbye = machine.goodbye
            code = goodbye.code if goodbye and connection.was_open else connection.code
            retry_ms = goodbye.retry_ms if goodbye and connection.was_open else connection.retry_ms
            address, in_ms = self._route.ended(code, retry_ms, self._clock() - began)
            self._tell(Retrying(address.socket, in_ms))
            await asyncio.sleep(in_ms / 1_000)

    def _receive(self, frame: bytes) -> None:
        if self._machine:
            self._machine.receive(frame, self._clock())
            self._soon()

    def _on_done(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._end(error if isinstance(error, ClientError) else ClientError(f"the client stopped: {error!r}"))

    def _end(self, error: ClientError) -> None:
        """Nothing more will be told: let go of everyone who waits."""
        self._ended = self._ended or error
        committing, self._committing = self._committing, None
        if committing and not committing.done():
            committing.set_exception(error)
            committing.exception()  # whoever waited has a shield of it; nobody else needs to look
        for receipt in list(self._receipts.values()):
            receipt.abandon(error)
        self._listeners.end(None if isinstance(error, Misused) else self._ended)

    # --- small things ---------------------------------------------------------------------------

    async def _join(self, profile: Profile) -> Identity:
        store = profile.store
        identity = store.identity()
        if identity is None:
            if not self._handle:
                raise Misused(f"the profile {self._path} is empty: say which handle to register")
            # Chosen and saved before it is said: whoever loses the answer asks again and gets the same device.
            identity = Identity(
                self._handle, account_id(self._handle), 0, self._chance.getrandbits(31), self._chance.randbytes(32)
            )
            store.put_identity(identity)
            store.commit()
        if self._handle and identity.handle != self._handle:
            raise Misused(f"the profile {self._path} belongs to {identity.handle!r}, not to {self._handle!r}")
        if not identity.device:
            joined = await self._http("").register(identity, self._label, self._platform)
            identity = replace(identity, device=int(joined.device, 16))
            store.put_identity(identity)
            store.commit()
        return identity

    def _http(self, authorization: str) -> Http:
        addresses = [address.http for address in self._route.addresses]
        return Http(addresses, authorization=authorization, tls=self._tls, limits=self.limits)

    def _account(self, peer: str | int) -> int:
        return account_id(peer) if isinstance(peer, str) else peer

    def _learn(self, peer: int, handle: str) -> None:
        store = self._open_profile().store
        conversation = store.conversation(peer)
        if conversation.handle != handle:
            store.put_conversation(replace(conversation, handle=handle))

    def _open_profile(self) -> Profile:
        if self._profile is None:
            raise Misused("the client is not open: use `async with`")
        return self._profile

    def _open_machine(self) -> Machine:
        if self._ended is not None:
            raise self._ended
        if self._machine is None:
            raise Misused("the client is not open: use `async with`")
        return self._machine
