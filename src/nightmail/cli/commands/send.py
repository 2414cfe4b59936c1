"""`nightmail send`: puts one message into the outbox, and waits until it has got as far as --wait says.

Knows:   when to stop waiting: no server answers. The message then stays in the outbox.
Touches: the profile.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import click

from nightmail.cli.contact_names import resolve
from nightmail.cli.errors import Exit
from nightmail.cli.output import TICKS, as_json_option, command_line, console, plain, print_json
from nightmail.cli.profiles import chosen, client_of, profile_option, server_options, servers_of, short_name
from nightmail.client import Client, Receipt
from nightmail.client.events import Connected, Event, Retrying, SecurityCodeChanged
from nightmail.client.messages import Tick, conversation_id
from nightmail.client.store.rows import Contact
from nightmail.model.words import Lane

WAITS = {"queued": Tick.PENDING, "sent": Tick.SENT, "delivered": Tick.DELIVERED, "read": Tick.READ}


class Order(NamedTuple):
    """What to send, and how long to wait for it."""

    to: str | int
    """A handle or an account number."""
    text: str
    lane: Lane
    wanted: Tick
    seconds: float
    servers: int
    """How many addresses must fail before the command gives up waiting."""


@click.command("send", short_help="Send a message; works offline.")
@click.argument("to", metavar="NAME")
@click.argument("text", required=False)
@profile_option
@click.option(
    "-w", "--wait", type=click.Choice(list(WAITS)), default="sent",
    help="What to wait for: message in the outbox, on the server, on a device, or read.",
)  # fmt: skip
@click.option(
    "--timeout", type=click.FloatRange(min=0), default=30.0, metavar="SECONDS", help="Stop waiting after this time."
)
@click.option("--high", is_flag=True, help="Use the high lane: it is delivered before the normal one.")
@server_options
@as_json_option
def command(
    to: str, text: str | None, profile: str | None, wait: str, timeout: float, high: bool, servers: tuple[str, ...],
    ca_file: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Send TEXT to NAME: a contact's name, or a handle. Without TEXT, or with -, it is read from standard input.

    The message is durable in the outbox before it is sent. If no server answers, the exit code is 14, and the next
    command that connects with this profile sends it under the same id, so it arrives once.
    """
    path = chosen(profile)
    found = servers_of(path, servers)
    client = client_of(path, found, ca_file=ca_file)
    order = Order(to, _text(text), Lane.HIGH if high else Lane.NORMAL, WAITS[wait], timeout, len(found))
    outcome = asyncio.run(_send(client, order))
    receipt = outcome.receipt
    reached = receipt.state >= order.wanted
    if as_json:
        state = "queued" if receipt.state is Tick.PENDING else receipt.state.name.lower()
        shape = {
            "message_id": receipt.message_id, "conversation_id": outcome.conversation, "state": state,
            "to": outcome.to.handle, "account": f"{outcome.to.account:x}",
        }  # fmt: skip
        marks = {"security_code_changed": outcome.changed, "held": outcome.held}
        print_json({**shape, **{mark: True for mark, so in marks.items() if so}})
    else:
        _say(outcome, path, reached)
    sys.exit(Exit.DONE if reached else Exit.QUEUED)


def _text(text: str | None) -> str:
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
    to: Contact
    receipt: Receipt
    conversation: str
    changed: bool
    """The recipient's key changed while the message was sent."""
    held: bool
    """The recipient's key changed after it was verified: the message waits until the user accepts the new key."""


async def _send(client: Client, order: Order) -> Outcome:
    """Queue the message, then wait until it has got far enough or waiting is pointless."""
    changes: list[SecurityCodeChanged] = []
    client.on(SecurityCodeChanged)(changes.append)
    async with client:
        events = client.events()
        order = order._replace(to=resolve(client, str(order.to)))
        receipt = await client.send(order.to, order.text, lane=order.lane)
        waiting = asyncio.ensure_future(_reached(receipt, order.wanted))
        pointless = asyncio.ensure_future(_is_pointless(client, events, order))
        try:
            await asyncio.wait((waiting, pointless), timeout=order.seconds, return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                waiting.result()
        finally:
            for task in (waiting, pointless):
                task.cancel()
            await asyncio.gather(waiting, pointless, return_exceptions=True)
        to = client.people.get(order.to)
        conversation = conversation_id(client.identity.account, to.account)
        changed = any(change.account == to.account for change in changes)
        held = receipt.state is Tick.PENDING and client.trust(order.to).held
        return Outcome(to, receipt, conversation, changed, held)


def _say(outcome: Outcome, path: Path, reached: bool) -> None:
    page, receipt, to = console(), outcome.receipt, outcome.to.handle or f"{outcome.to.account:x}"
    state = "queued" if receipt.state is Tick.PENDING else receipt.state.name.lower()
    whom = f"{outcome.to.name} ({to})" if outcome.to.name else to
    page.print(f"{TICKS[receipt.state]} {state}, to {plain(whom)}  {receipt.message_id}", markup=False)
    if outcome.held and not reached:
        page.print(
            "The security code has changed since you verified it. The message waits until you accept the new one:"
        )
        page.print(f"  {command_line('verify-contact', '--profile', short_name(path), to)}", markup=False)
    elif outcome.changed:
        page.print(
            f"The security code of {plain(to)} has changed: they have a new phone, or somebody impersonates them.",
            markup=False,
        )
        page.print(f"  {command_line('verify-contact', '--profile', short_name(path), to)}", markup=False)
    elif receipt.state is Tick.PENDING and not reached:
        page.print("No server answered. The message is safe in the outbox. The next command sends it:")
        page.print(f"  {command_line('listen', '--profile', short_name(path))}", markup=False)
    elif not reached:
        page.print("It did not get further in time. Delivery continues without this command.", style="dim")


async def _reached(receipt: Receipt, wanted: Tick) -> None:
    if wanted >= Tick.SENT:
        await {Tick.SENT: receipt.sent, Tick.DELIVERED: receipt.delivered, Tick.READ: receipt.read}[wanted]()


async def _is_pointless(client: Client, events: AsyncIterator[Event], order: Order) -> None:
    """Returns when every address has failed in turn, or when the message waits for the user to accept a key."""
    failures = 0
    if client.trust(order.to).held:
        return
    async for event in events:
        if isinstance(event, SecurityCodeChanged) and client.trust(order.to).held:
            return
        if isinstance(event, Connected):
            failures = 0
        elif isinstance(event, Retrying):
            failures += 1
            if failures >= order.servers:
                return
