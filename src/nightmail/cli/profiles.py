"""Which profile a command uses, and which servers it connects to.

    --profile PATH or NAME  >  NIGHTMAIL_PROFILE  >  the only profile there is
    --server URL            >  NIGHTMAIL_SERVER   >  the addresses stored in the profile  >  this machine's default port
    --ca-file FILE          >  NIGHTMAIL_CA_FILE  >  the path stored in the profile       >  the CAs of this system

Knows:   a name means a folder in ~/.local/share/nightmail; anything with a slash is a path.
Touches: the files `servers` (one address per line) and `ca-file` (a path) in a profile folder.
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
from nightmail.client.profile.key_places import write_durably
from nightmail.client.profile.settings import limits_of
from nightmail.model.handles import spellings

from .errors import Exit, Failure, sentence
from .unlocking import passphrase_option, secret_for
from .waiting import bounded_limits

DEFAULT_SERVER = "http://127.0.0.1:8640"
PROFILE_VARIABLE = "NIGHTMAIL_PROFILE"
SERVER_VARIABLE = "NIGHTMAIL_SERVER"
CA_VARIABLE = "NIGHTMAIL_CA_FILE"
SERVERS_FILE = "servers"
CA_FILE = "ca-file"
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


def folder_of(typed: str) -> Path:
    """The profile folder of a handle as a person typed it: the one that exists, or the one that a new profile gets."""
    folders = [folder_for(handle) for handle in spellings(typed)]
    return next((folder for folder in folders if (folder / STORE_FILE).exists()), folders[-1])


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


def ca_file_of(path: Path, given: str | None = None) -> str | None:
    """The CA file that was given, or the one that the profile remembers; None if it is neither."""
    if given:
        return given
    try:
        return (path / CA_FILE).read_text().strip() or None
    except OSError:
        return None


def remember_servers(path: Path, servers: Sequence[str], ca_file: str | None) -> None:
    """Store them in the profile, durably. Raises ProfileError."""
    write_durably(path / SERVERS_FILE, "".join(f"{server}\n" for server in servers).encode())
    if ca_file:
        write_durably(path / CA_FILE, f"{Path(ca_file).resolve()}\n".encode())


def client_of(path: Path, servers: Sequence[str], **options: Any) -> Client:
    """A client on a profile, with the secret that opens it. Raises click.UsageError for a bad address or CA file."""
    options.setdefault("secret", secret_for(path))
    options["ca_file"] = ca_file_of(path, options.get("ca_file"))
    try:
        options.setdefault("limits", bounded_limits(limits_of(path)))
        return Client(path, servers, **options)
    except Misused as error:
        raise click.UsageError(sentence(error)) from None
    except OSError as error:
        raise click.UsageError(f"{options.get('ca_file')} cannot be used: {error.strerror or error}") from None


def tls_of(ca_file: str | None) -> ssl.SSLContext | None:
    """Trusts the CAs in this file, and checks host names. Raises click.UsageError."""
    try:
        return ssl.create_default_context(cafile=ca_file) if ca_file else None
    except OSError as error:
        raise click.UsageError(f"{ca_file} cannot be used: {error.strerror or error}") from None


def anonymous_http(servers: Sequence[str], ca_file: str | None) -> Http:
    """For requests that need no account."""
    limits = bounded_limits(ClientLimits())
    addresses = [address.http for address in ServerRoute(servers, limits, SystemRandom()).addresses]
    return Http(addresses, tls=tls_of(ca_file), limits=limits)


# --- options ----------------------------------------------------------------------------------


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for each in known() if (name := short_name(each)).startswith(incomplete)]


def profile_option(command: Any) -> Any:
    command = passphrase_option(command)
    return click.option(
        "-p", "--profile", metavar="NAME|PATH", shell_complete=_complete,
        help=f"The profile to use; also {PROFILE_VARIABLE}. Not needed if there is only one.",
    )(command)  # fmt: skip


def ca_file_option(command: Any) -> Any:
    return click.option(
        "--ca-file", type=click.Path(exists=True, dir_okay=False), metavar="FILE", envvar=CA_VARIABLE,
        help=f"CA file (PEM) for a server with a private certificate; also {CA_VARIABLE}. Registering and linking "
        "store its path in the profile.",
    )(command)  # fmt: skip


def server_options(command: Any) -> Any:
    command = ca_file_option(command)
    return click.option(
        "-s", "--server", "servers", metavar="URL", multiple=True,
        help=f"Address of a server; may be repeated; also {SERVER_VARIABLE}. "
        f"By default the addresses stored in the profile, or {DEFAULT_SERVER}.",
    )(command)  # fmt: skip
