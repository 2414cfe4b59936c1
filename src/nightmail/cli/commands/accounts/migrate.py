"""`nightmail migrate`: moves an account with its history to a new device, and removes this device.

Knows:   the new device runs `nightmail link HANDLE --move`, and shows the code.
Touches: the profile. When the new device has everything, this device is removed; its folder stays.
"""

from __future__ import annotations

import asyncio
import sys

import click

from nightmail.cli.errors import Exit, Failure
from nightmail.cli.link_confirmation import confirm
from nightmail.cli.output import as_json_option, console, print_json
from nightmail.cli.profiles import chosen, client_of, profile_option, server_options, servers_of
from nightmail.client import Client
from nightmail.client.errors import Stopped
from nightmail.client.events import DeviceRemoved, Ended, Moved
from nightmail.client.own_devices.link_request import LinkRequest


@click.command("migrate", short_help="Move the account and its history to a new device.")
@click.argument("code", metavar="CODE|-")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--timeout", type=click.FloatRange(min=1), default=600.0, metavar="SECONDS", help="How long to wait.")
@profile_option
@server_options
@as_json_option
def command(
    code: str, yes: bool, timeout: float, profile: str | None, servers: tuple[str, ...], ca_file: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Move the account to the device that shows CODE (or - to read it from standard input), with its history.

    On the new device, run nightmail link HANDLE --move. When it has the whole history, this device sends the rest of
    its outbox and is removed from the account. If the move is interrupted, the next command continues it.
    """
    path = chosen(profile)
    client = client_of(path, servers_of(path, servers), ca_file=ca_file)
    request = LinkRequest.parse(sys.stdin.read() if code == "-" else code)
    if not yes:
        confirm(request, "Move the account to it? This device is removed when the new one has everything.")
    try:
        device = asyncio.run(_migrate(client, request, timeout))
    except TimeoutError:
        raise Failure(
            Exit.PENDING,
            "The account has not moved completely.",
            "Keep the new device online, and run listen here to continue.",
        ) from None
    if as_json:
        print_json({"handle": request.handle, "device": f"{device:x}"})
        return
    console().print(f"The account has moved to device {device:x}. You can delete this profile: {path}", markup=False)


async def _migrate(client: Client, request: LinkRequest, seconds: float) -> int:
    """Until the new device has everything, and this one is removed."""
    moved = False
    async with asyncio.timeout(seconds), client:
        events = client.events()
        device = await client.migrate(request)
        try:
            async for event in events:
                moved = moved or isinstance(event, Moved)
                if moved and isinstance(event, (DeviceRemoved, Ended)):
                    break
        except Stopped:
            if not moved:
                raise
    return device
