"""`nightmail unblock`: messages from a blocked contact again.

Touches: the block list at the server, then the contact in the profile.
"""

from __future__ import annotations

import click

from nightmail.cli.output import as_json_option
from nightmail.cli.profiles import profile_option, server_options
from nightmail.cli.waiting import timeout_option

from .block import set_blocked


@click.command("unblock", short_help="Receive messages from a contact again.")
@click.argument("person", metavar="NAME")
@profile_option
@server_options
@timeout_option()
@as_json_option
def command(person: str, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool) -> None:
    """Receive messages from NAME again. Messages that NAME sent while blocked are not delivered."""
    set_blocked(person, profile, servers, ca_file, as_json, blocked=False)
