"""`nightmail schedule`: have a message delivered later, or a webhook called.

Knows:   when to stop waiting for the server: the message then stays in the profile.
Touches: the profile, and the server.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from nightmail.cli.contact_names import resolve_any
from nightmail.cli.durations import Duration
from nightmail.cli.errors import Exit
from nightmail.cli.output import as_json_option, clock, command_line, console, plain, print_json
from nightmail.cli.profiles import chosen, client_of, profile_option, server_options, servers_of, short_name
from nightmail.cli.schedule_words import made_fields, scheduled_to, state_words, to_fields
from nightmail.cli.times import time_typed
from nightmail.cli.waiting import run_within, timeout_option, timeout_seconds
from nightmail.client import Client, ScheduledMessage
from nightmail.client.errors import DeliveryFailed
from nightmail.client.schedule_events import ScheduleChanged
from nightmail.model.schedule_rows import ScheduleState

from .send import text_given, why_pointless


@click.command("schedule", short_help="Have a message delivered later; works offline.")
@click.argument("to", metavar="NAME|URL")
@click.argument("text", metavar="TEXT|JSON", required=False)
@click.option("--in", "delay_ms", type=Duration(), metavar="30s|5m|1h|7d", help="After this time.")
@click.option("--at", "deliver_at", metavar="TIME", help="At this time: RFC 3339 with a zone, 2026-03-01T12:00:00Z.")
@profile_option
@server_options
@timeout_option()
@as_json_option
def command(
    to: str, text: str | None, delay_ms: int | None, deliver_at: str | None, profile: str | None,
    servers: tuple[str, ...], ca_file: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Have TEXT delivered to NAME later: a contact's name, a handle, or a group; at most 14 days ahead. Prints the id
    of the message. Without TEXT, or with -, it is read from standard input.

    It is sealed now, and delivered by the server at its time, also if this device is off then. If no server answers
    now, the exit code is 14, and the next command that connects with this profile hands it over. If its time has passed
    by more than a minute then, it has failed.

    With the URL of a webhook, the server calls it and tells it JSON. The server can read that: it calls a third party.
    It deletes it when the call has ended. The server must allow such calls (schedule.webhooks).
    """
    if (delay_ms is None) == (deliver_at is None):
        raise click.UsageError("Say when: --in or --at.")
    path = chosen(profile)
    found = servers_of(path, servers)
    client = client_of(path, found, ca_file=ca_file)
    if to.startswith(("http://", "https://")):
        made = run_within(_call(client, _call_asked(to, text, delay_ms, deliver_at)))
        _print_made(made, as_json)
        return
    at = None if deliver_at is None else _time(deliver_at)
    delay = None if delay_ms is None else delay_ms / 1_000
    outcome = asyncio.run(_schedule(client, to, text_given(text), at, delay, len(found)))
    _print_outcome(outcome, path, as_json)
    sys.exit(Exit.PENDING if outcome.message.is_queued else Exit.DONE)


# --- into a conversation ------------------------------------------------------------------------


class _Outcome(NamedTuple):
    message: ScheduledMessage
    why: str
    """Why the server does not have it yet, as a sentence."""


def _time(text: str) -> datetime:
    try:
        return time_typed(text)
    except ValueError as error:
        raise click.UsageError(f"TIME {error}.") from None


async def _schedule(
    client: Client, to: str, text: str, at: datetime | None, delay: float | None, servers: int
) -> _Outcome:
    """Queue the message, then wait until the server has it or waiting is pointless. Raises DeliveryFailed."""
    async with client:
        taken, events = client.events(), client.events()
        whom = resolve_any(client, to)
        receipt = await client.schedule(whom, text, at=at, delay=delay)
        waiting = asyncio.ensure_future(_taken(client, taken, receipt.message_id))
        peer = _message(client, receipt.message_id).peer
        pointless = asyncio.ensure_future(why_pointless(client, events, servers, peer))
        try:
            await asyncio.wait((waiting, pointless), timeout=timeout_seconds(), return_when=asyncio.FIRST_COMPLETED)
            why = pointless.result() if pointless.done() else "The server did not take it in time."
        finally:
            for task in (waiting, pointless):
                task.cancel()
            await asyncio.gather(waiting, pointless, return_exceptions=True)
        message = _message(client, receipt.message_id)
        if message.state is ScheduleState.FAILED:
            raise DeliveryFailed(message.id, message.reason)
        return _Outcome(message, why)


async def _taken(client: Client, events: Any, message_id: str) -> None:
    if not _message(client, message_id).is_queued:
        return
    async for event in events:
        if isinstance(event, ScheduleChanged) and event.message_id == message_id:
            return


def _message(client: Client, message_id: str) -> ScheduledMessage:
    return next(each for each in client.scheduled() if each.id == message_id)


def _print_outcome(outcome: _Outcome, path: Path, as_json: bool) -> None:
    message, page = outcome.message, console()
    if as_json:
        made = {"message_id": message.id, "deliver_at": message.deliver_at}
        why = {"why": outcome.why} if message.is_queued else {}
        print_json({**made_fields(made), "state": state_words(message), **to_fields(message), **why})
        return
    page.print(f"{message.id} at {clock(message.deliver_at)}, to {plain(scheduled_to(message))}", markup=False)
    if message.is_queued:
        page.print(plain(outcome.why), markup=False)
        page.print("The message is safe in the profile. The next command hands it to the server:")
        page.print(f"  {command_line('listen', '--profile', short_name(path))}", markup=False)


# --- to a webhook -------------------------------------------------------------------------------


def _call_asked(url: str, content: str | None, delay_ms: int | None, deliver_at: str | None) -> dict[str, Any]:
    try:
        told = msgspec.json.decode(content or "")
    except (msgspec.DecodeError, UnicodeEncodeError):
        raise click.UsageError("JSON is not JSON. A text has quotes of its own: '\"Hello\"'.") from None
    asked: dict[str, Any] = {"content": told, "target": {"type": "webhook", "url": url}}
    if delay_ms is not None:
        asked["delay_seconds"] = delay_ms / 1_000
    else:
        asked["deliver_at"] = deliver_at
    return asked


async def _call(client: Client, asked: dict[str, Any]) -> dict[str, Any]:
    async with client:
        return await client.http.schedule(asked, secrets.token_hex(16))


def _print_made(made: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(made_fields(made))
    else:
        console().print(f"{made['message_id']} at {clock(made['deliver_at'])}", markup=False)
