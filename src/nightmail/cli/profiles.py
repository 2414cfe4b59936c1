"""Which profile a command uses, and which servers it connects to.

    --profile PATH or NAME  >  NIGHTMAIL_PROFILE  >  the only profile there is
    --server URL            >  NIGHTMAIL_SERVER   >  the addresses stored in the profile  >  this machine's default port

Knows:   a name means a folder in ~/.local/share/nightmail; anything with a slash is a path.
Touches: the file `servers` in a profile folder: one address per line.
Never:   opens a profile; the client does.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Sequence
from pathlib import Path
from random import SystemRandom
from typing import Any
from urllib.parse import unquote

import click
from click.shell_completion import CompletionItem

from nightmail.client import Client
from nightmail.client.errors import Misused
from nightmail.client.limits import ClientLimits
from nightmail.client.link.http import Http
from nightmail.client.link.route import ServerRoute

from .errors import Exit, Failure
from .unlocking import passphrase_option, secret_for

DEFAULT_SERVER = "http://127.0.0.1:8640"
PROFILE_VARIABLE = "NIGHTMAIL_PROFILE"
SERVER_VARIABLE = "NIGHTMAIL_SERVER"
SERVERS_FILE = "servers"
STORE_FILE = "nightmail.db"


def base() -> Path:
    """The folder that holds the profiles."""
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(data).expanduser() / "nightmail"


def folder_for(handle: str) -> Path:
    """The profile folder of a handle. It is inside `base`, whatever characters the handle has."""
    if not handle:
        raise click.UsageError("A handle cannot be empty.")
    name = handle.replace("%", "%25").replace("/", "%2F").replace("\0", "%00")
    return base() / (f"%2E{name[1:]}" if name.startswith(".") else name)


def handle_of(folder: Path) -> str:
    return unquote(folder.name)


def known() -> list[Path]:
    """Every profile in `base`."""
    return sorted(each.parent for each in base().glob(f"*/{STORE_FILE}"))


def named(profile: str) -> Path:
    """A folder, or the name of one."""
    return Path(profile).expanduser() if os.sep in profile or profile in {".", ".."} else folder_for(profile)


def short_name(path: Path) -> str:
    """The shortest value of --profile that means it."""
    if path.parent == base() and named(handle := handle_of(path)) == path:
        return handle
    return str(path) if os.sep in str(path) else f".{os.sep}{path}"


def chosen(profile: str | None) -> Path:
    """The profile that a command uses; it exists. Raises Failure."""
    if profile := profile or os.environ.get(PROFILE_VARIABLE):
        path = named(profile)
        if not (path / STORE_FILE).exists():
            raise Failure(
                Exit.NO_PROFILE, f"There is no profile at {path}.", "Create one: nightmail register HANDLE."
            )  # fmt: skip
        return path
    match known():
        case []:
            raise Failure(
                Exit.NO_PROFILE, f"There is no profile in {base()}.", "Create one: nightmail register HANDLE."
            )
        case [only]:
            return only
        case several:
            names = ", ".join(short_name(each) for each in several)
            raise Failure(Exit.NO_PROFILE, f"There are several profiles: {names}.", "Name one with --profile.")


def servers_of(path: Path | None, given: Sequence[str] = ()) -> list[str]:
    """The servers to try, in this order."""
    if given:
        return list(given)
    if variable := os.environ.get(SERVER_VARIABLE):
        return variable.split()
    try:
        remembered = (path / SERVERS_FILE).read_text().split() if path else []
    except OSError:
        remembered = []
    return remembered or [DEFAULT_SERVER]


def remember_servers(path: Path, servers: Sequence[str]) -> None:
    (path / SERVERS_FILE).write_text("".join(f"{server}\n" for server in servers))


def client_of(path: Path, servers: Sequence[str], **options: Any) -> Client:
    """A client on a profile, with the secret that opens it. Raises click.UsageError for a bad address or CA file."""
    options.setdefault("secret", secret_for(path))
    try:
        return Client(path, servers, **options)
    except Misused as error:
        raise click.UsageError(f"{error}") from None
    except OSError as error:
        raise click.UsageError(f"{options.get('ca_file')} cannot be used: {error.strerror or error}") from None


def anonymous_http(servers: Sequence[str], ca_file: str | None) -> Http:
    """For requests that need no account."""
    tls = ssl.create_default_context(cafile=ca_file) if ca_file else None
    return Http([address.http for address in ServerRoute(servers, ClientLimits(), SystemRandom()).addresses], tls=tls)


# --- options ----------------------------------------------------------------------------------


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for each in known() if (name := short_name(each)).startswith(incomplete)]


def profile_option(command: Any) -> Any:
    command = passphrase_option(command)
    return click.option(
        "-p", "--profile", metavar="NAME|PATH", shell_complete=_complete,
        help=f"The profile to use; also {PROFILE_VARIABLE}. Not needed if there is only one.",
    )(command)  # fmt: skip


def server_options(command: Any) -> Any:
    command = click.option(
        "--ca-file", type=click.Path(exists=True, dir_okay=False),
        help="CA certificates that may sign the server's, PEM.",
    )(command)  # fmt: skip
    return click.option(
        "-s", "--server", "servers", metavar="URL", multiple=True,
        help=f"Address of a server; may be repeated; also {SERVER_VARIABLE}. "
        f"By default the addresses stored in the profile, or {DEFAULT_SERVER}.",
    )(command)  # fmt: skip
