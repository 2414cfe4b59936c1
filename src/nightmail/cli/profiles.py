"""Which profile a command is about, and which servers that profile talks to.

    --profile PATH or NAME  >  NIGHTMAIL_PROFILE  >  the only one there is
    --server URL            >  NIGHTMAIL_SERVER   >  what the profile remembers  >  this machine's default port

Knows:   a name is a folder below ~/.local/share/nightmail; anything with a slash is a path.
Touches: the file `servers` in a profile folder: one address per line.
Never:   opens a profile; the client does, and holds it.
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

from .failing import Exit, Failure
from .unlocking import passphrase_option, secret_for

DEFAULT_SERVER = "http://127.0.0.1:8640"
PROFILE_VARIABLE = "NIGHTMAIL_PROFILE"
SERVER_VARIABLE = "NIGHTMAIL_SERVER"
SERVERS_FILE = "servers"
STORE_FILE = "nightmail.db"


def base() -> Path:
    """Where profiles are kept."""
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(data).expanduser() / "nightmail"


def folder_for(handle: str) -> Path:
    """The profile of a handle. Whatever a handle holds, its folder stays below `base`."""
    name = handle.replace("%", "%25").replace("/", "%2F").replace("\0", "%00")
    return base() / (f"%2E{name[1:]}" if name.startswith(".") else name)


def handle_of(folder: Path) -> str:
    return unquote(folder.name)


def known() -> list[Path]:
    """Every profile below `base`."""
    return sorted(each.parent for each in base().glob(f"*/{STORE_FILE}"))


def named(profile: str) -> Path:
    """A folder, or the name of one."""
    return Path(profile).expanduser() if os.sep in profile or profile in {".", ".."} else folder_for(profile)


def short_name(path: Path) -> str:
    """What --profile takes for it."""
    if path.parent == base():
        return handle_of(path)
    return str(path) if os.sep in str(path) else f".{os.sep}{path}"


def chosen(profile: str | None) -> Path:
    """The profile that a command is about; it exists. Raises Failure."""
    if profile := profile or os.environ.get(PROFILE_VARIABLE):
        path = named(profile)
        if not (path / STORE_FILE).exists():
            raise Failure(
                Exit.NO_PROFILE, f"There is no profile at {path}.", "Make one: nightmail register HANDLE."
            )  # fmt: skip
        return path
    match known():
        case []:
            raise Failure(Exit.NO_PROFILE, f"There is no profile in {base()}.", "Make one: nightmail register HANDLE.")
        case [only]:
            return only
        case several:
            names = ", ".join(handle_of(each) for each in several)
            raise Failure(Exit.NO_PROFILE, f"Which profile? There are: {names}.", "Name one with --profile.")


def servers_of(path: Path | None, given: Sequence[str] = ()) -> list[str]:
    """Where to connect, in this order."""
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
    """A client on a profile, with what opens it. Raises Failure for an address that is none."""
    options.setdefault("secret", secret_for(path))
    try:
        return Client(path, servers, **options)
    except Misused as error:
        raise click.UsageError(f"{error}") from None
    except OSError as error:
        raise click.UsageError(f"{options.get('ca_file')} cannot be used: {error.strerror or error}") from None


def stranger(servers: Sequence[str], ca_file: str | None) -> Http:
    """For questions that anybody may ask."""
    tls = ssl.create_default_context(cafile=ca_file) if ca_file else None
    return Http([address.http for address in ServerRoute(servers, ClientLimits(), SystemRandom()).addresses], tls=tls)


# --- options ----------------------------------------------------------------------------------


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for each in known() if (name := handle_of(each)).startswith(incomplete)]


def profile_option(command: Any) -> Any:
    command = passphrase_option(command)
    return click.option(
        "-p", "--profile", metavar="NAME|PATH", shell_complete=_complete,
        help=f"Whose device this is; also {PROFILE_VARIABLE}. Not needed while there is only one.",
    )(command)  # fmt: skip


def server_options(command: Any) -> Any:
    command = click.option(
        "--ca-file", type=click.Path(exists=True, dir_okay=False),
        help="Who may vouch for the server's certificate, PEM.",
    )(command)  # fmt: skip
    return click.option(
        "-s", "--server", "servers", metavar="URL", multiple=True,
        help=f"Where the server is; may be repeated; also {SERVER_VARIABLE}. "
        f"Otherwise what the profile remembers, or {DEFAULT_SERVER}.",
    )(command)  # fmt: skip
