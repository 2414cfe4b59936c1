"""`nightmail send`: one message into the outbox, and a wait for how far it got.

Knows:   when waiting is of no use: no server answers. The message is safe then, and says so.
Touches: the profile.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import click

from nightmail.client import Client, Receipt
from nightmail.client.events import Connected, Event, Retrying, SecurityCodeChanged
from nightmail.client.messages import Tick, conversation_id
from nightmail.model.handles import spelled
from nightmail.model.ids import account_id
from nightmail.model.words import Lane

from .failing import Exit
from .profiles import chosen, client_of, profile_option, server_options, servers_of, short_name
from .saying import TICKS, as_json_option, command_line, console, plain, say_json

WAITS = {"queued": Tick.PENDING, "sent": Tick.SENT, "delivered": Tick.DELIVERED, "read": Tick.READ}


class Wish(NamedTuple):
    """What is to be sent, and how long somebody waits for it."""

    to: str
    text: str
    lane: Lane
    wanted: Tick
    seconds: float
    servers: int
    """Addresses that must fail before nobody answers."""


@click.command("send", short_help="Send a message; also without a network.")
@click.argument("to", metavar="TO")
@click.argument("text", required=False)
@profile_option
@click.option(
    "-w", "--wait", type=click.Choice(list(WAITS)), default="sent",
    help="How far the message must get: into the outbox, to the server, to a device, before somebody's eyes.",
)  # fmt: skip
@click.option("--timeout", type=click.FloatRange(min=0), default=30.0, metavar="SECONDS", help="How long to wait.")
@click.option("--high", is_flag=True, help="In the high lane: drains before the rest.")
@server_options
@as_json_option
def command(
    to: str, text: str | None, profile: str | None, wait: str, timeout: float, high: bool, servers: tuple[str, ...],
    ca_file: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Send TEXT to the handle TO. Without TEXT, or with -, it is read from standard input.

    The message is durable here before anything goes out. If no server answers it stays in the outbox, the
    exit code is 14, and the next command with this profile sends it: under the same id, so it arrives once.
    """
    path = chosen(profile)
    found = servers_of(path, servers)
    client = client_of(path, found, ca_file=ca_file)
    wish = Wish(to, _text(text), Lane.HIGH if high else Lane.NORMAL, WAITS[wait], timeout, len(found))
    outcome = asyncio.run(_send(client, wish))
    receipt = outcome.receipt
    reached = receipt.state >= wish.wanted
    if as_json:
        state = "queued" if receipt.state is Tick.PENDING else receipt.state.name.lower()
        shape = {"message_id": receipt.message_id, "conversation_id": outcome.conversation, "state": state}
        marks = {"security_code_changed": outcome.changed, "held": outcome.held}
        say_json({**shape, **{mark: True for mark, so in marks.items() if so}})
    else:
        _say(outcome, path, reached, to)
    sys.exit(Exit.DONE if reached else Exit.QUEUED)


def _text(text: str | None) -> str:
    if text is None or text == "-":
        # The line break that echo and editors leave is nobody's message.
        given = sys.stdin.buffer.read().removesuffix(b"\n")
    else:
        given = text.encode("utf-8", "surrogateescape")
    try:
        words = given.decode()
    except UnicodeDecodeError:
        raise click.UsageError("A message is text, in UTF-8.") from None
    if not words:
        raise click.UsageError("There is nothing to send: say it as TEXT, or on standard input.")
    return words


class Outcome(NamedTuple):
    receipt: Receipt
    conversation: str
    changed: bool
    """Another key of theirs was believed while this was sent."""
    held: bool
    """Their key changed after it was verified: it waits for the person, not for the network."""


async def _send(client: Client, wish: Wish) -> Outcome:
    """Queue it, then wait until it got far enough, or until waiting is of no use."""
    changes: list[SecurityCodeChanged] = []
    client.on(SecurityCodeChanged)(changes.append)
    async with client:
        events = client.events()
        receipt = await client.send(wish.to, wish.text, lane=wish.lane)
        waiting = asyncio.ensure_future(_reached(receipt, wish.wanted))
        hopeless = asyncio.ensure_future(_of_no_use(client, events, wish))
        try:
            await asyncio.wait((waiting, hopeless), timeout=wish.seconds, return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                waiting.result()
        finally:
            for task in (waiting, hopeless):
                task.cancel()
            await asyncio.gather(waiting, hopeless, return_exceptions=True)
        peer = account_id(spelled(wish.to))
        conversation = conversation_id(client.identity.account, peer)
        changed = any(change.account == peer for change in changes)
        return Outcome(receipt, conversation, changed, receipt.state is Tick.PENDING and client.trust(wish.to).held)


def _say(outcome: Outcome, path: Path, reached: bool, to: str) -> None:
    page, receipt = console(), outcome.receipt
    state = "queued" if receipt.state is Tick.PENDING else receipt.state.name.lower()
    page.print(f"{TICKS[receipt.state]} {state}  {receipt.message_id}", markup=False)
    if outcome.held and not reached:
        page.print("Their security code has changed since you verified it. The message waits until you accept that:")
        page.print(f"  {command_line('verify-contact', '--profile', short_name(path), to)}", markup=False)
    elif outcome.changed:
        page.print(f"The security code of {plain(to)} has changed: a new phone, or somebody else.", markup=False)
        page.print(f"  {command_line('verify-contact', '--profile', short_name(path), to)}", markup=False)
    elif receipt.state is Tick.PENDING and not reached:
        page.print("No server answered. The message is safe in the outbox, and goes out with the next command:")
        page.print(f"  {command_line('listen', '--profile', short_name(path))}", markup=False)
    elif not reached:
        page.print("It did not get further in time; it will, without you waiting for it.", style="dim")


async def _reached(receipt: Receipt, wanted: Tick) -> None:
    if wanted >= Tick.SENT:
        await {Tick.SENT: receipt.sent, Tick.DELIVERED: receipt.delivered, Tick.READ: receipt.read}[wanted]()


async def _of_no_use(client: Client, events: AsyncIterator[Event], wish: Wish) -> None:
    """Until every address was tried in vain, one after the other; or it waits for the person."""
    in_vain = 0
    if client.trust(wish.to).held:
        return
    async for event in events:
        if isinstance(event, SecurityCodeChanged) and client.trust(wish.to).held:
            return
        if isinstance(event, Connected):
            in_vain = 0
        elif isinstance(event, Retrying):
            in_vain += 1
            if in_vain >= wish.servers:
                return
