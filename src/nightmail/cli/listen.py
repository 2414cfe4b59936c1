"""`nightmail listen`: messages and ticks as they come; first what came while nobody looked.

Knows:   what was printed is read, and is not printed again. With --peek it is neither.
Touches: the profile, standard output.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator

import click
from rich.console import Console
from rich.text import Text

from nightmail.client import Client
from nightmail.client.events import (
    Connected,
    DeliveryReceipt,
    Disconnected,
    Ended,
    Event,
    Gap,
    KeysRefused,
    ListRefused,
    MessageFailed,
    QueueEmpty,
    ReadReceipt,
    Retrying,
    SecurityCodeChanged,
    SentAck,
    Unreadable,
    WaitingForNetwork,
)
from nightmail.client.messages import Message, Tick

from .failing import REASONS
from .people import Names
from .profiles import chosen, client_of, profile_option, server_options, servers_of
from .saying import as_json_option, clock, console, event_json, message_json, plain, say_json

PAGE = 256
"""Messages looked at in one go."""


@click.command("listen", short_help="Print messages and ticks as they come.")
@profile_option
@click.option("--until-empty", is_flag=True, help="End when everything that waits has come in and gone out.")
@click.option("--peek", is_flag=True, help="Leave everything unread: it is shown again, and its senders learn nothing.")
@server_options
@as_json_option
def command(
    profile: str | None, until_empty: bool, peek: bool, servers: tuple[str, ...], ca_file: str | None, as_json: bool
) -> None:
    """Print messages and ticks as they come, until Ctrl-C.

    What was printed counts as read, and its sender is told so (unless read receipts are off).
    Unread messages that came earlier are printed first. With --json there is one object per line; receipts
    have these shapes:

    \b
      delivery_receipt {message_id, conversation_id, delivered_at, device, state}
      read_receipt     {conversation_id, read_up_to, read_at}
    """
    path = chosen(profile)
    client = client_of(path, servers_of(path, servers), ca_file=ca_file)
    voice = Script() if as_json else Page(console(), Names(client))
    asyncio.run(_listen(client, voice, until_empty, peek))


async def _listen(client: Client, voice: Script | Page, until_empty: bool, peek: bool) -> None:
    # Ctrl-C and a stop by a service manager end it as well as Ctrl-D would: acknowledged, and the profile let go.
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with client:
        listening = asyncio.ensure_future(_tell_all(client, voice, until_empty, peek))
        stopping = asyncio.ensure_future(stopped.wait())
        await asyncio.wait((listening, stopping), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if listening.done():
            listening.result()
        else:
            listening.cancel()
            await asyncio.wait([listening])


async def _tell_all(client: Client, voice: Script | Page, until_empty: bool, peek: bool) -> None:
    # Asked for before anything can happen: what the history does not have comes as an event.
    events = client.events()
    account = client.identity.account
    drained = False
    for message in _unread(client):
        voice.message(message, account)
        if not peek:
            await client.read(message.peer, [message.id])
    async for event in events:
        if isinstance(event, Message):
            voice.message(event, account)
            if not peek and not event.own:
                await client.read(event.peer, [event.id])
        else:
            voice.event(event, account)
        drained = drained or isinstance(event, QueueEmpty)
        if until_empty and drained and not _is_waiting(client):
            return


def _all(client: Client) -> Iterator[list[Message]]:
    """Every conversation's messages, the newest page first."""
    for conversation in client.conversations():
        before = None
        while page := client.history(conversation.peer, PAGE, before):
            yield page
            before = page[0]


def _unread(client: Client) -> list[Message]:
    if not client.unread():
        return []
    unread = [each for page in _all(client) for each in page if not each.own and each.state is not Tick.READ]
    return sorted(unread, key=lambda message: message.position)


def _is_waiting(client: Client) -> bool:
    """Is something still in the outbox?"""
    return any(each.own and each.state is Tick.PENDING for page in _all(client) for each in page)


class Script:
    """One JSON object per line."""

    def message(self, message: Message, account: int) -> None:
        say_json(message_json(message, account))

    def event(self, event: Event, account: int) -> None:
        say_json(event_json(event, account))


class Page:
    """Lines for people."""

    def __init__(self, page: Console, names: Names) -> None:
        self._page, self._names = page, names

    def message(self, message: Message, account: int) -> None:
        name = self._names.of(message.peer)
        text = message.content.text
        said = plain(text) if text is not None else f"({message.kind.name.lower()})"
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
            case WaitingForNetwork():
                self._note(f"waiting for the network: {len(event.message_ids)} in the outbox")
            case Connected():
                self._note(f"connected to {event.node}")
            case Disconnected():
                self._note(f"disconnected: {event.why}")
            case Retrying():
                self._note(f"trying again in {event.in_ms / 1000:.1f} s")
            case Gap():
                self._note(f"{event.high - event.low + 1} will never come: {event.reason.name.lower()}")
            case Unreadable():
                self._note("something came that this device cannot open; its sender will seal it again")
            case SecurityCodeChanged():
                self._note(f"the security code of {event.handle} has changed")
                if event.verified:
                    self._note("it had been verified: what is written to them waits until you accept the new one")
            case ListRefused():
                self._note(f"nothing is sealed for {event.handle} now: {event.why}")
            case KeysRefused():
                self._note(f"keys offered as those of {event.handle} were refused: {event.why}")
            case Ended():
                self._note(f"the server closed for good: {event.sentence}")
            case _:
                pass

    def _tick(self, at: int, what: str, message_id: str, style: str = "green") -> None:
        self._line(clock(at), f"{what}  ", message_id, style)

    def _note(self, what: str) -> None:
        self._page.print(Text(plain(what), style="dim"))

    def _line(self, when: str, head: str, rest: str, style: str) -> None:
        line = Text(f"{when}  ", style="dim")
        line.append(plain(head), style=style)
        line.append(plain(rest), style="" if style == "bold cyan" else "dim")
        self._page.print(line)
