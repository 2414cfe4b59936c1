"""`nightmail lock`: the PIN without which nobody registers this account's handle anew.

Touches: the server, as a device of the account. Nothing of the PIN is kept here.
"""

from __future__ import annotations

import asyncio

import click

from nightmail.client import Client
from nightmail.client.profile.pin import pin_token

from .pins import ask_pin, given_pin, pin_file_option
from .profiles import chosen, client_of, profile_option, server_options, servers_of
from .saying import as_json_option, console, say_json
from .unlocking import secret_for


@click.group("lock", short_help="Set and remove the PIN against a stolen number.")
def command() -> None:
    """Set and remove the PIN without which nobody registers this account's handle anew.

    Whoever has your number for a day, or comes first on a server that verifies nobody, still needs it. You need it
    when all your devices are lost. After ten wrong ones nobody can try for a week.
    """


@command.command("set")
@pin_file_option
@profile_option
@server_options
@as_json_option
def set_(
    pin_file: str | None, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool
) -> None:
    """Set the PIN, or another one: 4 characters or more; asked for without echo."""
    path = chosen(profile)
    client = client_of(path, servers_of(path, servers), ca_file=ca_file, secret=secret_for(path))
    pin = given_pin(pin_file) or ask_pin("New PIN", twice=True)
    handle = asyncio.run(_set(client, pin))
    _say(handle, as_json, locked=True)


@command.command("remove")
@profile_option
@server_options
@as_json_option
def remove(profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool) -> None:
    """Remove the PIN."""
    path = chosen(profile)
    client = client_of(path, servers_of(path, servers), ca_file=ca_file, secret=secret_for(path))
    handle = asyncio.run(_remove(client))
    _say(handle, as_json, locked=False)


def _say(handle: str, as_json: bool, *, locked: bool) -> None:
    if as_json:
        say_json({"handle": handle, "locked": locked})
    elif locked:
        console().print(f"Registering {handle} anew needs the PIN from now on. Do not forget it.", markup=False)
    else:
        console().print(f"Registering {handle} anew needs no PIN any more.", markup=False)


async def _set(client: Client, pin: str) -> str:
    async with client:
        token = await asyncio.to_thread(pin_token, client.identity.account, pin)
        await client.http.set_lock(token)
        return client.identity.handle


async def _remove(client: Client) -> str:
    async with client:
        await client.http.remove_lock()
        return client.identity.handle
