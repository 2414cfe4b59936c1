"""`nightmail register`: a profile folder, and an account with this as its first device.

Touches: the profile folder. It is removed again if the server says no, and kept if nobody answered:
the token in it was chosen, and asking again gives the same device.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import click

from nightmail.client import Client
from nightmail.client.errors import Misused, Refused
from nightmail.client.store.rows import Identity
from nightmail.model.handles import spelled

from .failing import Exit, Failure, sentence
from .pins import ask_pin, given_pin, pin_file_option
from .profiles import (
    STORE_FILE,
    client_of,
    folder_for,
    named,
    remember_servers,
    server_options,
    servers_of,
    short_name,
    stranger,
)
from .saying import as_json_option, command_line, console, say_json
from .unlocking import can_ask, keeping_options, passphrase_option, secret_for, secret_to_keep


@click.command("register", short_help="Make an account and its first device.")
@click.argument("handle")
@click.option("-p", "--profile", metavar="PATH", help="Where to keep it. Otherwise ~/.local/share/nightmail/HANDLE.")
@click.option("--label", default="terminal", help="What the device is called in the list of devices.")
@click.option("--code", default="", metavar="CODE", help="The code that was sent to you. Otherwise it is asked for.")
@click.option("--pin", is_flag=True, help="Take over an account that is yours and has a lock: its PIN is asked for.")
@pin_file_option
@keeping_options
@passphrase_option
@server_options
@as_json_option
def command(
    handle: str, profile: str | None, label: str, code: str, pin: bool, pin_file: str | None,
    servers: tuple[str, ...], ca_file: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Make an account called HANDLE, with this machine as its first device.

    HANDLE is a name, or a phone number that begins with +. Where the server verifies whose it is, a code is sent to
    its owner. An account that exists and is yours is taken over: this machine becomes its only device.

    The profile folder holds the device's token, its outbox and its history, sealed, and remembers the servers.
    Doing it again is safe: the same profile stays the same device.
    """
    handle = spelled(handle)
    path = named(profile) if profile else folder_for(handle)
    is_new = not (path / STORE_FILE).exists()
    secret = secret_to_keep() if is_new else secret_for(path)
    found = servers_of(path, servers)
    proof = Proof(code, given_pin(pin_file) or (ask_pin("PIN") if pin else ""))
    options: dict[str, Any] = {"handle": handle, "label": label, "ca_file": ca_file, "secret": secret}
    try:
        identity = _try(path, found, options, proof)
    except Misused as error:
        raise Failure(Exit.USAGE, sentence(error), "Name another folder (--profile).") from None
    except (Refused, Failure, click.Abort):
        # Nothing was registered, so there is nothing to keep.
        if is_new:
            shutil.rmtree(path, ignore_errors=True)
        raise
    _say(path, handle, identity, found, as_json)


class Proof(NamedTuple):
    """What shows that a handle is one's own."""

    code: str
    pin: str


def _try(path: Path, servers: list[str], options: dict[str, Any], proof: Proof) -> Identity:
    """Register; ask the person for what the server asks for, each once."""
    try:
        return asyncio.run(_register(client_of(path, servers, **options, code=proof.code, pin=proof.pin)))
    except Refused as refused:
        if refused.code == "verification_needed" and not proof.code:
            asyncio.run(_verify(servers, options))
            proof = proof._replace(code=_ask_code(options["handle"]))
        elif refused.code == "pin_needed" and not proof.pin and can_ask():
            proof = proof._replace(pin=ask_pin("This account has a registration lock. PIN"))
        else:
            raise
    return _try(path, servers, options, proof)


async def _register(client: Client) -> Identity:
    async with client:
        await client.ready()  # others can write to it from now on, also while it is not running
        return client.identity


async def _verify(servers: list[str], options: dict[str, Any]) -> None:
    await stranger(servers, options["ca_file"]).verify(options["handle"])


def _ask_code(handle: str) -> str:
    if not can_ask():
        raise Failure(
            Exit.REFUSED, f"A code was sent to {handle}.", "Say it: nightmail register with --code.",
        )  # fmt: skip
    return str(click.prompt(f"A code was sent to {handle}. Code", err=True)).strip()


def _say(path: Path, handle: str, identity: Identity, servers: list[str], as_json: bool) -> None:
    remember_servers(path, servers)
    device = f"{identity.device:x}"
    if as_json:
        say_json(
            {"handle": handle, "account": f"{identity.account:x}", "device": device, "profile": str(path),
             "servers": servers}
        )  # fmt: skip
        return
    page = console()
    page.print(f"{handle} is registered at {servers[0]}: device {device}, profile {path}", markup=False)
    name = short_name(path)
    page.print(f"Next: {command_line('listen', '--profile', name)}", style="dim", markup=False)
    page.print(f"      {command_line('send', '--profile', name, 'SOMEBODY', 'Hello')}", style="dim", markup=False)
