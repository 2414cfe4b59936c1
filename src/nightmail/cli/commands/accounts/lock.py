"""`nightmail lock`: the PIN that is needed to take over this account with a new device.

Touches: the server, as a device of the account. The PIN is not stored in the profile.
"""

from __future__ import annotations

import asyncio

import click

from nightmail.cli.output import as_json_option, console, print_json
from nightmail.cli.pins import ask_pin, given_pin, pin_file_option
from nightmail.cli.profiles import chosen, client_of, profile_option, server_options, servers_of
from nightmail.cli.unlocking import secret_for
from nightmail.cli.waiting import run_within, timeout_option
from nightmail.client import Client
from nightmail.client.profile.pin import pin_token
from nightmail.model.ids import account_id


@click.group("lock", short_help="Set or remove the PIN that protects an account from takeover.")
def command() -> None:
    """Set or remove the PIN that is needed to register this account's handle again.

    The PIN protects the account if somebody else gets your phone number, or if the server does not verify handles.
    You need it yourself when all your devices are lost. After ten wrong PINs, registration is blocked for a week.
    """


@command.command("set")
@pin_file_option
@profile_option
@server_options
@timeout_option()
@as_json_option
def set_(
    pin_file: str | None, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool
) -> None:
    """Set or change the PIN: 4 characters or more, read without echo."""
    path = chosen(profile)
    client = client_of(path, servers_of(path, servers), ca_file=ca_file, secret=secret_for(path))
    pin = given_pin(pin_file) or ask_pin("New PIN", twice=True)
    handle = run_within(_set(client, pin))
    _say(handle, as_json, locked=True)


@command.command("remove")
@profile_option
@server_options
@timeout_option()
@as_json_option
def remove(profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool) -> None:
    """Remove the PIN."""
    path = chosen(profile)
    client = client_of(path, servers_of(path, servers), ca_file=ca_file, secret=secret_for(path))
    handle = run_within(_remove(client))
    _say(handle, as_json, locked=False)


def _say(handle: str, as_json: bool, *, locked: bool) -> None:
    if as_json:
        print_json({"handle": handle, "locked": locked})
    elif locked:
        console().print(f"The PIN is set. Registering {handle} again needs it: do not forget it.", markup=False)
    else:
        console().print(f"The PIN is removed. Registering {handle} again needs none.", markup=False)


async def _set(client: Client, pin: str) -> str:
    async with client:
        token = await asyncio.to_thread(pin_token, account_id(client.identity.handle), pin)
        await client.http.set_lock(token)
        return client.identity.handle


async def _remove(client: Client) -> str:
    async with client:
        await client.http.remove_lock()
        return client.identity.handle
