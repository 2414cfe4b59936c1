"""`nightmail account`: the settings of the account, signing out this device, and closing the account.

Touches: the server, as a device of the account. The profile folder stays.
Never:   signs out or closes without a confirmation, or --yes.
"""

from __future__ import annotations

from typing import Any

import click

from nightmail.cli.errors import Exit, Failure
from nightmail.cli.output import as_json_option, console, plain, print_json
from nightmail.cli.profiles import chosen, client_of, profile_option, server_options, servers_of
from nightmail.cli.unlocking import can_ask
from nightmail.cli.waiting import run_within, timeout_option
from nightmail.client import Client


@click.group("account", short_help="Show and change the settings of an account; sign out; close it.")
def command() -> None:
    """Show and change the settings of an account, sign out this device, or close the account."""


@command.command("show")
@profile_option
@server_options
@timeout_option()
@as_json_option
def show(profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool) -> None:
    """Show the account of this device, and its settings."""
    seen = run_within(_show(_client(profile, servers, ca_file)))
    if as_json:
        print_json(seen)
        return
    page = console()
    for name, value in (
        ("handle", plain(seen["handle"])), ("account", seen["account"]), ("this device", seen["this"]),
        ("devices", str(seen["devices"])), ("read receipts", "on" if seen["read_receipts"] else "off"),
        ("PIN", "set" if seen["locked"] else "none"),
    ):  # fmt: skip
        page.print(f"{name:14} {value}", markup=False)


@command.command("read-receipts")
@click.argument("wanted", metavar="on|off", type=click.Choice(["on", "off"]))
@profile_option
@server_options
@timeout_option()
@as_json_option
def read_receipts(
    wanted: str, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool
) -> None:
    """Switch read receipts on or off, for all devices of the account.

    While they are off, nobody is told that you have read a message, and you are not told whether others have.
    """
    run_within(_set_read_receipts(_client(profile, servers, ca_file), on=wanted == "on"))
    if as_json:
        print_json({"read_receipts": wanted == "on"})
    else:
        console().print(f"Read receipts are {wanted}.")


@command.command("leave")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@profile_option
@server_options
@timeout_option()
@as_json_option
def leave(yes: bool, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool) -> None:
    """Sign out: remove this device from the account. The other devices stay.

    This device gets no further messages, and messages in its outbox are not sent. Its profile folder stays. The
    primary device cannot leave: move the account (nightmail migrate), or close it (nightmail account close).
    """
    client = _client(profile, servers, ca_file)
    if not yes:
        _confirm("Sign out this device? Messages that it has not sent are lost.")
    handle, device = run_within(_leave(client))
    if as_json:
        print_json({"handle": handle, "removed": f"{device:x}"})
    else:
        console().print(f"This device is no longer a device of {plain(handle)}. {_folder(profile)}", markup=False)


@command.command("close")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@profile_option
@server_options
@timeout_option()
@as_json_option
def close(yes: bool, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool) -> None:
    """Close the account: all its devices are removed, and messages that wait for them are deleted.

    This cannot be undone. Messages that are stored on devices stay there.
    """
    client = _client(profile, servers, ca_file)
    if not yes:
        _confirm("Close the account, with all its devices? This cannot be undone.")
    handle = run_within(_close(client))
    if as_json:
        print_json({"handle": handle, "closed": True})
    else:
        console().print(f"The account {plain(handle)} is closed. {_folder(profile)}", markup=False)


def _client(profile: str | None, servers: tuple[str, ...], ca_file: str | None) -> Client:
    path = chosen(profile)
    return client_of(path, servers_of(path, servers), ca_file=ca_file)


def _folder(profile: str | None) -> str:
    return f"The messages are still in {chosen(profile)}: delete it if you do not need them."


def _confirm(question: str) -> None:
    """Raises Failure or click.Abort if the answer is not yes."""
    if not can_ask():
        raise Failure(Exit.USAGE, "A confirmation is needed, and standard input is not a terminal.", "Use --yes.")
    click.confirm(question, abort=True, err=True)


async def _show(client: Client) -> dict[str, Any]:
    async with client:
        seen = await client.http.devices()
        kept = {name: seen[name] for name in ("account", "handle", "read_receipts", "locked")}
        return {**kept, "devices": len(seen["devices"]), "this": f"{client.identity.device:x}"}


async def _set_read_receipts(client: Client, *, on: bool) -> None:
    async with client:
        await client.http.set_read_receipts(on)


async def _leave(client: Client) -> tuple[str, int]:
    async with client:
        if client.is_primary:
            raise Failure(
                Exit.USAGE, "This is the primary device of the account: without it, no other device could be added.",
                "Move the account first (nightmail migrate), or close it (nightmail account close).",
            )  # fmt: skip
        identity = client.identity
        await client.http.unlink(identity.device)
        return identity.handle, identity.device


async def _close(client: Client) -> str:
    async with client:
        handle = client.identity.handle
        await client.http.close_account()
        return handle
