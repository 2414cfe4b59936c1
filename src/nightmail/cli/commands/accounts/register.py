"""`nightmail register`: creates a profile folder, and an account with this machine as its first device.

Touches: the profile folder. It is removed if the server refuses, and kept if no server answers: it holds the
token that the device chose, so another attempt registers the same device.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, NamedTuple

import click

from nightmail.cli.errors import Exit, Failure, sentence
from nightmail.cli.output import as_json_option, command_line, console, print_json
from nightmail.cli.pins import ask_pin, given_pin, pin_file_option
from nightmail.cli.profiles import (
    STORE_FILE,
    anonymous_http,
    client_of,
    folder_of,
    named,
    remember_servers,
    server_options,
    servers_of,
    short_name,
)
from nightmail.cli.unlocking import can_ask, keeping_options, passphrase_option, secret_for, secret_to_keep
from nightmail.cli.waiting import run_within, timeout_option
from nightmail.client import Client
from nightmail.client.errors import Misused, Refused
from nightmail.client.store.rows import Identity
from nightmail.model.handles import spellings


@click.command("register", short_help="Create an account with its first device.")
@click.argument("handle")
@click.option("-p", "--profile", metavar="PATH", help="The profile folder. By default ~/.local/share/nightmail/HANDLE.")
@click.option("--label", default="terminal", help="The device's name in the list of devices.")
@click.option(
    "--code",
    default="",
    metavar="CODE",
    help="The verification code that was sent to you. By default, you are asked for it.",
)
@click.option("--pin", is_flag=True, help="Take over your own account that has a lock; asks for its PIN.")
@pin_file_option
@keeping_options
@passphrase_option
@server_options
@timeout_option()
@as_json_option
def command(
    handle: str, profile: str | None, label: str, code: str, pin: bool, pin_file: str | None,
    servers: tuple[str, ...], ca_file: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Create an account called HANDLE, with this machine as its first device.

    HANDLE is a name, or a phone number that begins with +. If the server verifies handles, it sends a code to the
    owner. If the account exists and you prove that it is yours, this machine becomes its only device.

    The profile folder holds the device's token, outbox and history, encrypted, and the addresses of the servers.
    Registering again with the same profile is safe: it stays the same device.
    """
    handle = spellings(handle)[0]
    path = named(profile) if profile else folder_of(handle)
    is_new = not (path / STORE_FILE).exists()
    secret = secret_to_keep() if is_new else secret_for(path)
    found = servers_of(path, servers)
    proof = Proof(code, given_pin(pin_file) or (ask_pin("PIN") if pin else ""))
    options: dict[str, Any] = {"handle": handle, "label": label, "ca_file": ca_file, "secret": secret}
    try:
        identity = _try(path, found, options, proof)
        if not is_new:
            run_within(_check_known(client_of(path, found, **options)))
    except Misused as error:
        raise Failure(Exit.USAGE, sentence(error), "Name another folder (--profile).") from None
    except (Refused, Failure, click.Abort) as error:
        # Nothing was registered, so the folder holds nothing to keep; after a timeout, it may be registered.
        if is_new and not (isinstance(error, Failure) and error.exit_code == Exit.TIMED_OUT):
            shutil.rmtree(path, ignore_errors=True)
        raise
    remember_servers(path, found, ca_file)
    _say(path, identity.handle, identity, found, as_json)


class Proof(NamedTuple):
    """Proves that a handle belongs to this person."""

    code: str
    pin: str


def _try(path: Path, servers: list[str], options: dict[str, Any], proof: Proof) -> Identity:
    """Register. Asks the person for a code or a PIN if the server wants one, each once."""
    try:
        return run_within(_register(client_of(path, servers, **options, code=proof.code, pin=proof.pin)))
    except Refused as refused:
        if refused.code == "verification_needed" and not proof.code:
            run_within(_verify(servers, options))
            proof = proof._replace(code=_ask_code(options["handle"]))
        elif refused.code == "pin_needed" and not proof.pin and can_ask():
            proof = proof._replace(pin=ask_pin("This account has a registration lock. PIN"))
        else:
            raise
    return _try(path, servers, options, proof)


async def _register(client: Client) -> Identity:
    async with client:
        await client.ready()  # its keys are published: others can write to it, also while it is not running
        return client.identity


async def _check_known(client: Client) -> None:
    """The profile existed before: the server must know its device. Raises Failure; the profile is not changed."""
    async with client:
        try:
            await client.http.devices()
        except Refused as refused:
            if refused.code != "unauthorized":
                raise
            raise Failure(
                Exit.REFUSED,
                "This server does not know the device of this profile: the profile belongs to another server, or the "
                "device was removed.",
                "To register here, name another folder (--profile).", refused.code,
            ) from None  # fmt: skip


async def _verify(servers: list[str], options: dict[str, Any]) -> None:
    await anonymous_http(servers, options["ca_file"]).verify(options["handle"])


def _ask_code(handle: str) -> str:
    if not can_ask():
        raise Failure(
            Exit.REFUSED, f"A code was sent to {handle}.", "Register again with --code.",
        )  # fmt: skip
    return str(click.prompt(f"A code was sent to {handle}. Code", err=True)).strip()


def _say(path: Path, handle: str, identity: Identity, servers: list[str], as_json: bool) -> None:
    device = f"{identity.device:x}"
    if as_json:
        print_json(
            {"handle": handle, "account": f"{identity.account:x}", "device": device, "profile": str(path),
             "servers": servers}
        )  # fmt: skip
        return
    page = console()
    page.print(f"{handle} is registered at {servers[0]}: device {device}, profile {path}", markup=False)
    name = short_name(path)
    page.print(f"Next: {command_line('listen', '--profile', name)}", style="dim", markup=False)
    page.print(f"      {command_line('send', '--profile', name, 'SOMEBODY', 'Hello')}", style="dim", markup=False)
