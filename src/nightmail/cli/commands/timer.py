"""`nightmail timer`: after which time the messages of a conversation disappear.

Touches: the profile: the change is a message, which waits in the outbox like any other.
"""

from __future__ import annotations

import asyncio
import sys
from typing import NamedTuple

import click

from nightmail.cli.contact_names import resolve_any
from nightmail.cli.durations import Duration, check_timer, timer_words
from nightmail.cli.errors import Exit
from nightmail.cli.group_requests import asked
from nightmail.cli.json_shapes import state_word
from nightmail.cli.output import as_json_option, console, plain, print_json
from nightmail.cli.profiles import chosen, client_of, profile_option, server_options, servers_of
from nightmail.cli.waiting import timeout_option
from nightmail.client import Client, Group
from nightmail.client.messages import Tick
from nightmail.client.store.rows import Contact
from nightmail.model.words import Lane

from .send import Order, Outcome, delivered, print_outcome, to_json


@click.command("timer", short_help="Let the messages of a conversation disappear.")
@click.argument("person", metavar="NAME")
@click.argument("after", metavar="[30s…7d|off]", type=Duration(), required=False)
@profile_option
@timeout_option()
@server_options
@as_json_option
def command(
    person: str, after: int | None, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool
) -> None:
    """Show or set the time after which the messages of the conversation with NAME disappear: 30s, 5m, 1h, 7d, or off.

    It holds for messages that either of you writes from then on; both see that it was set. A message disappears from
    each device of its reader that long after it was read there, and from its author's devices that long after it was
    sent. If nobody receives it within that time, the server drops it, and it has failed.

    In a group, admins set it; `nightmail group settings` says who may.
    """
    path = chosen(profile)
    found = servers_of(path, servers)
    client = client_of(path, found, ca_file=ca_file)
    said = asyncio.run(_shown_or_set(client, person, after, len(found)))
    if isinstance(said, ShownTimer):
        if as_json:
            print_json({**to_json(said.whose), "timer_ms": said.life_ms})
        else:
            _print(said.whose, said.life_ms)
        return
    assert after is not None
    reached = said.receipt.state >= Tick.SENT
    if as_json:
        state = {"message_id": said.receipt.message_id, "state": state_word(said.receipt.state)}
        print_json({**to_json(said.to), "timer_ms": after, **state, **({} if reached else {"why": said.why})})
    else:
        _print(said.to, after)
        print_outcome(said, path, reached)
    sys.exit(Exit.DONE if reached else Exit.PENDING)


class ShownTimer(NamedTuple):
    whose: Contact | Group
    life_ms: int


async def _shown_or_set(client: Client, person: str, after: int | None, servers: int) -> ShownTimer | Outcome:
    """The timer as it is, or as it was set in a group; or what became of the message that sets it."""
    async with client:
        peer = resolve_any(client, person)
        if isinstance(peer, Group):
            if after is not None:
                check_timer(after)
                peer = await asked(client, servers, lambda: client.change_group(peer, timer_ms=after))
            return ShownTimer(peer, peer.settings.timer_ms)
        if after is None:
            to = client.people.get(peer)
            return ShownTimer(to, client.timer(to.account))
        return await delivered(client, Order(person, "", "", Lane.NORMAL, Tick.SENT, servers, timer_ms=after))


def _print(to: Contact | Group, life_ms: int) -> None:
    where = f"in {to.name}" if isinstance(to, Group) else f"with {to.name or to.handle or f'{to.account:x}'}"
    console().print(f"Messages {plain(where)} {timer_words(life_ms)}.", markup=False)
