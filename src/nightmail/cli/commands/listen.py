"""`nightmail listen`: prints unread messages, then messages and receipts as they arrive.

Knows:   a printed message counts as read and is not printed again, except with --peek.
Touches: the profile, standard output.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator

import click
from rich.console import Console
from rich.text import Text

from nightmail.cli.contact_names import ContactNames
from nightmail.cli.durations import life_differs, timer_words
from nightmail.cli.errors import REASONS, Exit, Failure, no_keys_yet
from nightmail.cli.file_words import STATE_WORDS, about_file
from nightmail.cli.group_json import GroupEvents
from nightmail.cli.group_words import event_words, seen_words
from nightmail.cli.json_shapes import event_json, message_json
from nightmail.cli.output import as_json_option, clock, console, hanging, plain, plain_body, print_json
from nightmail.cli.profiles import chosen, client_of, profile_option, server_options, servers_of
from nightmail.cli.waiting import SECONDS
from nightmail.client import Client
from nightmail.client.events import (
    BackedUp,
    BackupFailed,
    Connected,
    DeliveryReceipt,
    Disappeared,
    Disconnected,
    Ended,
    Event,
    Gap,
    KeysRefused,
    LifeDiffers,
    ListRefused,
    ListUnsigned,
    MessageFailed,
    QueueEmpty,
    ReadReceipt,
    Retrying,
    SecurityCodeChanged,
    SentAck,
    TimerChanged,
    Unreadable,
    WaitingForNetwork,
)
from nightmail.client.group_events import (
    GroupBroken,
    GroupChangeRefused,
    GroupReceipt,
    GroupUpdated,
    MemberJoined,
    MemberMissing,
    MembersDiffer,
)
from nightmail.client.media.rows import FileState
from nightmail.client.media_events import FileChanged
from nightmail.client.messages import Message, Tick
from nightmail.client.store.search import text_of

PAGE = 256
"""Messages read from the store at a time."""


@click.command("listen", short_help="Print messages and receipts as they arrive.")
@profile_option
@click.option("--until-empty", is_flag=True, help="End when the mailbox and the outbox are empty.")
@click.option(
    "--peek", is_flag=True, help="Leave messages unread: no read receipts are sent, and listen prints them again."
)
@click.option(
    "--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
    help=f"End when nothing has arrived for this time. By default {SECONDS:g} with --until-empty, otherwise never.",
)  # fmt: skip
@server_options
@as_json_option
def command(
    profile: str | None, until_empty: bool, peek: bool, timeout: float | None, servers: tuple[str, ...],
    ca_file: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Print unread messages, then messages and receipts as they arrive, until Ctrl-C.

    A printed message counts as read, and its sender gets a read receipt, unless they are switched off. With --json,
    every line is one object; receipts have these fields:

    \b
      delivery_receipt {message_id, conversation_id, delivered_at, device, state}
      read_receipt     {conversation_id, read_up_to, read_at}
    """
    path = chosen(profile)
    client = client_of(path, servers_of(path, servers), ca_file=ca_file)
    printer = JsonPrinter() if as_json else LinePrinter(console(), ContactNames(client))
    seconds = SECONDS if timeout is None and until_empty else timeout
    try:
        asyncio.run(_listen(client, printer, until_empty, peek, seconds))
    except TimeoutError:
        raise Failure(
            Exit.TIMED_OUT, f"Nothing arrived for {seconds:g} seconds.", "What is in the outbox stays there."
        ) from None


async def _listen(
    client: Client, printer: JsonPrinter | LinePrinter, until_empty: bool, peek: bool, seconds: float | None
) -> None:
    # SIGINT and SIGTERM end the loop in order: what was received is acknowledged, and the profile is closed.
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with client:
        listening = asyncio.ensure_future(_print_all(client, printer, until_empty, peek, seconds))
        stopping = asyncio.ensure_future(stopped.wait())
        await asyncio.wait((listening, stopping), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if listening.done():
            listening.result()
        else:
            listening.cancel()
            await asyncio.wait([listening])


async def _print_all(
    client: Client, printer: JsonPrinter | LinePrinter, until_empty: bool, peek: bool, seconds: float | None
) -> None:
    """Raises TimeoutError if nothing arrives for so many seconds, Failure if a message cannot leave the outbox."""
    # Subscribe before reading the history: a message that is not in the history yet then comes as an event.
    events = client.events()
    account = client.identity.account
    drained = False
    unsealable: set[int] = set()
    for message in _unread(client):
        printer.message(message, account)
        if not peek:
            await client.read(message.peer, [message.id])
    async for event in _while_alive(events, seconds):
        if isinstance(event, (ListUnsigned, ListRefused)):
            unsealable.add(event.account)
        if isinstance(event, Message):
            printer.message(event, account)
            if not peek and not event.own:
                await client.read(event.peer, [event.id])
        else:
            printer.event(event, account)
        drained = drained or isinstance(event, QueueEmpty)
        # The store may know already what the next events tell.
        if until_empty and drained and not events.has_next:
            if any(file.state is FileState.WANTED for file in client.files()):
                continue
            waiting = _waiting_for(client)
            if waiting - unsealable - _held(client, waiting):
                continue
            async with asyncio.timeout(seconds):
                await client.confirmed()
            if not events.has_next:
                _conclude([ContactNames(client).of(each) for each in waiting])
                return


async def _while_alive(events: AsyncIterator[Event], seconds: float | None) -> AsyncIterator[Event]:
    """The events. Raises TimeoutError if none but attempts to connect comes for so long."""
    loop = asyncio.get_running_loop()
    end = None if seconds is None else loop.time() + seconds
    while True:
        async with asyncio.timeout_at(end):
            event = await anext(events, None)
        if event is None:
            return
        if seconds is not None and not isinstance(event, (Retrying, Disconnected)):
            end = loop.time() + seconds
        yield event


def _conclude(names: list[str]) -> None:
    """The mailbox is empty. Raises Failure if messages to these people cannot be encrypted now."""
    if names:
        raise Failure(
            Exit.PENDING, f"Messages to {', '.join(sorted(names))} stay in the outbox.",
            "They cannot be encrypted until the recipient has published its keys, or until you have accepted its "
            "changed security code (nightmail verify-contact).",
        )  # fmt: skip


def _pages(client: Client) -> Iterator[list[Message]]:
    """The messages of every conversation, the newest page first."""
    # A group to which nothing was sent yet is no conversation, and may have something in the outbox.
    for peer in {*(row.peer for row in client.conversations()), *client.group_names()}:
        before = None
        while page := client.history(peer, PAGE, before):
            yield page
            before = page[0]


def _unread(client: Client) -> list[Message]:
    if not client.unread():
        return []
    unread = [
        each for page in _pages(client) for each in page
        if not each.own and each.state is not Tick.READ and each.timer_ms is None
    ]  # fmt: skip
    return sorted(unread, key=lambda message: message.position)


def _waiting_for(client: Client) -> set[int]:
    """Accounts to which a message is still in the outbox."""
    return {each.peer for page in _pages(client) for each in page if each.own and each.state is Tick.PENDING}


def _held(client: Client, accounts: set[int]) -> set[int]:
    return {account for account in accounts if client.trust(account).held}


class JsonPrinter:
    """One JSON object per line."""

    def message(self, message: Message, account: int) -> None:
        print_json(message_json(message, account))

    def event(self, event: Event, account: int) -> None:
        print_json(event_json(event, account))


class LinePrinter:
    """Lines for people."""

    def __init__(self, page: Console, names: ContactNames) -> None:
        self._console, self._names = page, names

    def message(self, message: Message, account: int) -> None:
        name = self._names.whose(message)
        text, pointer = text_of(message), message.media
        said = plain_body(text) if text is not None else f"({message.kind.name.lower()})"
        if pointer is not None:
            said = f"{said}  {about_file(pointer)}"
        who = f"→ {name}" if message.own else name
        self._line(clock(message.at) if message.at else "", f"{who}: ", said, "bold cyan" if not message.own else "dim")

    def event(self, event: Event, account: int) -> None:
        match event:
            case SentAck():
                self._tick(event.at, "✓ sent", event.message_id)
            case DeliveryReceipt(state=Tick.FAILED):
                self._tick(event.delivered_at, f"✗ {event.reason} on device {event.device:x}", event.message_id, "red")
            case DeliveryReceipt():
                self._tick(event.delivered_at, "✓✓ delivered", event.message_id)
            case ReadReceipt():
                self._tick(event.read_at, "✓✓ read", event.read_up_to, "blue")
            case MessageFailed():
                why = REASONS.get(event.reason, event.reason)
                self._tick(event.at, f"✗ failed: {why}", event.message_id, "red")
            case TimerChanged():
                who = "you" if event.own else self._names.of(event.peer)
                self._note(f"{who} set the timer: messages {timer_words(event.life_ms)}")
            case Disappeared():
                count = len(event.message_ids)
                self._note("1 message disappeared" if count == 1 else f"{count} messages disappeared")
            case LifeDiffers():
                self._note(life_differs(event.said_ms, event.sealed_ms))
            case WaitingForNetwork():
                self._note(f"waiting for the network: {len(event.message_ids)} in the outbox")
            case Connected():
                self._note(f"connected to {event.node}")
            case Disconnected():
                self._note(f"disconnected: {event.why}")
            case Retrying():
                why = f"{event.why}; " if event.why else ""
                self._note(f"{why}trying again in {event.in_ms / 1000:.1f} s")
            case Gap():
                self._note(f"{event.high - event.low + 1} messages will never arrive: {event.reason.name.lower()}")
            case Unreadable():
                self._note("this device cannot decrypt a message; its sender will encrypt it again")
            case SecurityCodeChanged():
                self._note(f"the security code of {event.handle} has changed")
                if event.verified:
                    self._note("you had verified the old one: messages to them wait until you accept the new one")
            case ListUnsigned():
                self._note(no_keys_yet(event.handle))
            case ListRefused():
                self._note(f"messages to {event.handle} are not sent: {event.why}")
            case KeysRefused():
                self._note(f"the server offered keys for {event.handle} that were rejected: {event.why}")
            case GroupReceipt():
                self._tick(0, f"✓✓ {seen_words(event)}", event.message_id, "blue" if event.read else "green")
            case GroupUpdated() | GroupChangeRefused() | GroupBroken() | MembersDiffer() | MemberMissing():
                self._group(event)
            case MemberJoined() if self._names.or_you(event.account) != "you":
                self._group(event)
            case FileChanged(state=FileState.KEPT):
                self._note(f"fetched the file of {event.message_id}; to save it: nightmail media save")
            case FileChanged(state=FileState.GONE | FileState.REFUSED):
                self._note(f"the file of {event.message_id} is {STATE_WORDS[event.state]}")
            case BackedUp():
                self._note(f"backed up {event.messages:,} messages to {event.file}")
            case BackupFailed():
                self._note(f"no backup was made: {event.why}")
            case Ended():
                self._note(f"the server closed the connection permanently: {event.sentence}")
            case _:
                pass

    def _group(self, event: GroupEvents) -> None:
        role = (
            self._names.role(event.group, event.accounts[-1])
            if isinstance(event, GroupUpdated) and event.accounts
            else None
        )
        self._note(f"{self._names.of(event.group)}: {event_words(event, self._names.or_you, role)}")

    def _tick(self, at: int, what: str, message_id: str, style: str = "green") -> None:
        self._line(clock(at) if at else " " * 8, f"{what}  ", plain(message_id), style)

    def _note(self, what: str) -> None:
        self._console.print(Text(plain(what), style="dim"))

    def _line(self, when: str, head: str, rest: str, style: str) -> None:
        line = Text(f"{when}  ", style="dim")
        line.append(plain(head), style=style)
        line.append(rest, style="" if style == "bold cyan" else "dim")
        self._console.print(hanging(self._console, line))
