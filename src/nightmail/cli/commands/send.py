"""`nightmail send`: puts one message into the outbox, and waits until it has got as far as --wait says.

Knows:   when to stop waiting: no server answers, or the message waits for something that this command cannot do. The
         message then stays in the outbox.
Touches: the profile.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import click

from nightmail.cli.contact_names import resolve, resolve_any
from nightmail.cli.errors import Exit, advice, no_keys_yet
from nightmail.cli.file_words import progress_shown
from nightmail.cli.json_shapes import state_word
from nightmail.cli.output import TICKS, as_json_option, command_line, console, plain, print_json
from nightmail.cli.profiles import chosen, client_of, profile_option, server_options, servers_of, short_name
from nightmail.cli.waiting import timeout_option, timeout_seconds
from nightmail.client import Client, Group, Receipt
from nightmail.client.errors import Misused
from nightmail.client.events import Connected, Event, ListRefused, ListUnsigned, Retrying, SecurityCodeChanged
from nightmail.client.media_events import FileProgress
from nightmail.client.messages import Tick, conversation_id
from nightmail.client.store.rows import Contact
from nightmail.model.ids import MessageId
from nightmail.model.words import Lane

WAITS = {
    "pending": Tick.PENDING,
    "queued": Tick.PENDING,
    "sent": Tick.SENT,
    "delivered": Tick.DELIVERED,
    "read": Tick.READ,
}
"""--wait → what is waited for. "queued" is the former word for "pending"."""
FILE_PATIENCE = 5
"""So often every address may fail while a file is sent: a server that restarts in the middle is waited for."""
HELD = "The security code has changed since you verified it. The message waits until you accept the new one."


class Order(NamedTuple):
    """What to send, and how long to wait for it."""

    to: str
    """As it was typed: a handle, the name of a contact or a group, or a number."""
    text: str
    reply_to: str
    lane: Lane
    wanted: Tick
    servers: int
    """How many addresses must fail before the command gives up waiting."""
    timer_ms: int | None = None
    """Instead of a text: the timer to set in the conversation; 0: none."""
    mentions: tuple[str, ...] = ()
    """Members of the group whom it is meant for, as they were typed."""
    file: Path | None = None
    """The file to send; the text belongs to it, and may be empty."""


def _message_id(_: click.Context, __: click.Parameter, text: str | None) -> str:
    try:
        # The text itself: another client may write the same numbers with more or fewer zeros.
        return text if text and MessageId.parse(text) else ""
    except ValueError:
        raise click.BadParameter("This is not a message id: `nightmail history --json` shows them.") from None


@click.command("send", short_help="Send a message; works offline.")
@click.argument("to", metavar="NAME")
@click.argument("text", required=False)
@profile_option
@click.option(
    "-w", "--wait", type=click.Choice(list(WAITS)), default="sent", metavar="STATE",
    help="What to wait for: pending (in the outbox), sent (on the server), delivered (on a device) or read.",
)  # fmt: skip
@click.option(
    "-f",
    "--file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Send this file; TEXT is then optional, and shown with it.",
)
@click.option("--reply-to", metavar="ID", callback=_message_id, help="The id of the message that this one answers.")
@click.option(
    "--mention", "mentions", metavar="NAME", multiple=True,
    help="A member of the group whom it is meant for; may be repeated. It then uses the high lane.",
)  # fmt: skip
@click.option("--high", is_flag=True, help="Use the high lane: it is delivered before the normal one.")
@timeout_option()
@server_options
@as_json_option
def command(
    to: str, text: str | None, profile: str | None, wait: str, file: Path | None, reply_to: str,
    mentions: tuple[str, ...], high: bool, servers: tuple[str, ...], ca_file: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Send TEXT to NAME: a contact's name, a handle, or a group. Without TEXT, or with -, it is read from
    standard input.

    The message is durable in the outbox before it is sent. If no server answers, the exit code is 14, and the next
    command that connects with this profile sends it under the same id, so it arrives once. A file goes on where it
    stopped; it must stay as it is until then.
    """
    path = chosen(profile)
    found = servers_of(path, servers)
    client = client_of(path, found, ca_file=ca_file)
    lane = Lane.HIGH if high else Lane.NORMAL
    if file and mentions:
        raise click.UsageError("A file mentions nobody: send a message for that.")
    words = text or "" if file and text != "-" else text_given(text)
    failures = len(found) * (FILE_PATIENCE if file else 1)
    order = Order(to, words, reply_to, lane, WAITS[wait], failures, mentions=mentions, file=file)
    with progress_shown(client, as_json=as_json):
        outcome = asyncio.run(deliver(client, order))
    receipt = outcome.receipt
    reached = receipt.state >= order.wanted
    if as_json:
        shape = {
            "message_id": receipt.message_id, "conversation_id": outcome.conversation,
            "state": state_word(receipt.state), **to_json(outcome.to),
        }  # fmt: skip
        marks = {"security_code_changed": outcome.changed, "held": outcome.held}
        why = {} if reached else {"why": outcome.why}
        print_json({**shape, **{mark: True for mark, so in marks.items() if so}, **why})
    else:
        print_outcome(outcome, path, reached)
    sys.exit(Exit.DONE if reached else Exit.PENDING)


def text_given(text: str | None) -> str:
    """The text of a message, as it was typed or from standard input."""
    if text is None or text == "-":
        # echo and editors add a final line break that is not part of the message.
        given = sys.stdin.buffer.read().removesuffix(b"\n")
    else:
        given = text.encode("utf-8", "surrogateescape")
    try:
        words = given.decode()
    except UnicodeDecodeError:
        raise click.UsageError("A message must be UTF-8 text.") from None
    if not words:
        raise click.UsageError("There is nothing to send: give TEXT, or write it to standard input.")
    return words


class Outcome(NamedTuple):
    to: Contact | Group
    receipt: Receipt
    conversation: str
    changed: bool
    """The recipient's key changed while the message was sent."""
    held: bool
    """The recipient's key changed after it was verified: the message waits until the user accepts the new key."""
    why: str
    """Why the message has not got further, as a sentence."""


async def deliver(client: Client, order: Order) -> Outcome:
    """Queue the message, then wait until it has got far enough or waiting is pointless."""
    async with client:
        return await delivered(client, order)


async def delivered(client: Client, order: Order) -> Outcome:
    """The same with a client that is open."""
    changes: list[SecurityCodeChanged] = []
    client.on(SecurityCodeChanged)(changes.append)
    events = client.events()
    found = resolve_any(client, order.to)
    to = found if isinstance(found, Group) else client.people.get(found)
    receipt = await _queue(client, order, found)
    peer = to.id if isinstance(to, Group) else to.account
    waiting = asyncio.ensure_future(_reached(receipt, order.wanted))
    pointless = asyncio.ensure_future(why_pointless(client, events, order.servers, peer))
    try:
        await _first_of(client, waiting, pointless)
        if waiting.done():
            waiting.result()
        why = pointless.result() if pointless.done() else _why_late(receipt.state)
    finally:
        for task in (waiting, pointless):
            task.cancel()
        await asyncio.gather(waiting, pointless, return_exceptions=True)
    conversation = conversation_id(client.identity.account, peer)
    changed = any(change.account == peer for change in changes)
    held = receipt.state is Tick.PENDING and client.trust(peer).held
    to = to if isinstance(to, Group) else client.people.get(peer)
    return Outcome(to, receipt, conversation, changed, held, why)


async def _first_of(client: Client, *tasks: asyncio.Future[Any]) -> None:
    """Until one is done, or nothing has happened for as long as --timeout says. A file may take its time."""
    moved = True

    def note(_: FileProgress) -> None:
        nonlocal moved
        moved = True

    client.on(FileProgress)(note)
    while moved:
        moved = False
        done, _ = await asyncio.wait(tasks, timeout=timeout_seconds(), return_when=asyncio.FIRST_COMPLETED)
        if done:
            return


async def _queue(client: Client, order: Order, to: str | int | Group) -> Receipt:
    if order.timer_ms is not None and not isinstance(to, Group):
        return await client.set_timer(to, order.timer_ms)
    if order.file is not None:
        return await client.send_file(
            to, order.file, caption=order.text, reply_to_message_id=order.reply_to, lane=order.lane
        )
    mentions = _mentioned(client, order.mentions, to)
    return await client.send(to, order.text, reply_to_message_id=order.reply_to, lane=order.lane, mentions=mentions)


def _mentioned(client: Client, typed: tuple[str, ...], to: str | int | Group) -> list[int]:
    """The accounts of the members that were typed. Raises Misused."""
    if typed and not isinstance(to, Group):
        raise Misused("only members of a group are mentioned: NAME is a person")
    members = {member.account for member in to.members} if isinstance(to, Group) else set[int]()
    mentions = [client.people.get(resolve(client, word)).account for word in typed]
    for word, account in zip(typed, mentions, strict=True):
        if account not in members:
            raise Misused(f"{plain(word)!r} is not in the group")
    return mentions


def to_json(to: Contact | Group) -> dict[str, object]:
    """Where a message went."""
    if isinstance(to, Group):
        return {"group": f"{to.id:x}", "name": to.name}
    return {"to": to.handle, "account": f"{to.account:x}"}


def print_outcome(outcome: Outcome, path: Path, reached: bool) -> None:
    page, receipt = console(), outcome.receipt
    if isinstance(outcome.to, Group):
        to, whom = f"group:{outcome.to.id:x}", f"the group {outcome.to.name}"
    else:
        to = outcome.to.handle or f"{outcome.to.account:x}"
        whom = f"{outcome.to.name} ({to})" if outcome.to.name else to
    page.print(
        f"{TICKS[receipt.state]} {state_word(receipt.state)}, to {plain(whom)}  {receipt.message_id}", markup=False
    )
    if outcome.changed and not outcome.held:
        page.print(
            f"The security code of {plain(to)} has changed: they have a new phone, or somebody impersonates them.",
            markup=False,
        )
    if not reached:
        page.print(plain(outcome.why), markup=False)
    if outcome.changed or outcome.held:
        page.print(f"  {command_line('verify-contact', '--profile', short_name(path), to)}", markup=False)
    elif receipt.state is Tick.PENDING and not reached:
        page.print("The message is safe in the outbox. The next command sends it:")
        page.print(f"  {command_line('listen', '--profile', short_name(path))}", markup=False)


async def _reached(receipt: Receipt, wanted: Tick) -> None:
    if wanted >= Tick.SENT:
        await {Tick.SENT: receipt.sent, Tick.DELIVERED: receipt.delivered, Tick.READ: receipt.read}[wanted]()


def _why_late(state: Tick) -> str:
    if state is Tick.PENDING:
        return "The server did not accept it in time."
    return "It did not get further in time. Delivery continues without this command."


async def why_pointless(client: Client, events: AsyncIterator[Event], servers: int, peer: int) -> str:
    """Returns when waiting is pointless: every address failed in turn, or the message waits for something else."""
    failures = 0
    if client.trust(peer).held:
        return HELD
    async for event in events:
        match event:
            case SecurityCodeChanged() if client.trust(peer).held:
                return HELD
            case ListUnsigned(account=account) if account == peer:
                return no_keys_yet(event.handle)
            case ListRefused(account=account) if account == peer:
                return f"The server's list of their devices is not what they signed: {event.why}."
            case Connected():
                failures = 0
            case Retrying():
                failures += 1
                if failures >= servers:
                    return f"No server answered: {event.why or 'it closed the connection'}. {advice(event.why)}".strip()
            case _:
                pass
    return "The connection ended."
