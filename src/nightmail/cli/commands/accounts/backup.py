"""`nightmail backup`: an encrypted file with the history of a profile, here or on the server; and the way back from it.

Knows:   that a restore shows whose backup it is, from when and how large, before it changes anything.
Touches: the profile, without a client; the file of the backup.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace
from rich.console import Console
from rich.progress import Progress as Bar

from nightmail.cli.backup_secrets import new_passphrase, secret_file_option, secret_of, shown
from nightmail.cli.durations import Duration, duration_words
from nightmail.cli.errors import Exit, Failure
from nightmail.cli.json_shapes import time_fields
from nightmail.cli.output import as_json_option, clock, console, plain, print_json
from nightmail.cli.profiles import chosen, profile_option, server_options
from nightmail.cli.server_backups import (
    copies_of,
    fetched,
    forget_backup,
    list_backups,
    opened_profile,
    push,
)
from nightmail.cli.sizes import size_words
from nightmail.cli.unlocking import can_ask
from nightmail.cli.waiting import TRANSFER_S, timeout_option
from nightmail.client.backup.automatic import check_interval, whole_path
from nightmail.client.backup.looking import BackupInfo, OpenBackup, kept_by, open_backup, open_own
from nightmail.client.backup.making import BackupMade, Progress, make_backup, state_with
from nightmail.client.backup.restoring import check_account, check_newest, restore
from nightmail.client.backup.schedule import BackupState, put_state, state_in
from nightmail.client.backup.secret import BackupSecret, new_recovery_code
from nightmail.client.backup.server_copy import server_file
from nightmail.client.errors import Misused
from nightmail.client.profile.profile import Profile

FILE = click.Path(dir_okay=False, path_type=Path)


@click.group("backup", short_help="Save the history, encrypted, and restore it on a new device.")
def command() -> None:
    """Save the history of a profile in an encrypted file, here or on the server, and restore it on a new device.

    The file holds messages, contacts, verified identities and settings. A recovery code or a passphrase opens it, and
    nothing else does. Messages that disappear are not in it.
    """


@command.command()
@click.argument("file", type=FILE, required=False)
@click.option(
    "--by", type=click.Choice(["code", "passphrase"]),
    help="What opens the backup from now on: a new recovery code, or a passphrase. The first time, a code.",
)  # fmt: skip
@click.option("--to", type=click.Choice(["file", "server"]), help="Keep it in FILE, or on the server.")
@secret_file_option
@profile_option
@server_options
@timeout_option(TRANSFER_S)
@as_json_option
def create(
    file: Path | None, by: str | None, to: str | None, secret_file: str | None, profile: str | None,
    servers: tuple[str, ...], ca_file: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Save what is new in FILE, or with --to server on the server; with neither, where the last backup is.

    The first time, everything is saved, and a recovery code is shown: twelve words, shown once. Write them down.
    Later backups add what has changed, and need no code.
    """
    path = chosen(profile)
    with opened_profile(path) as opened:
        former = state_in(opened.store)
        on_server = server_file(path)
        where = on_server if to == "server" else _place(file, former)
        if to == "server" and file is not None:
            raise click.UsageError("Name a file, or --to server; not both.")
        if where is None or (to == "file" and where == on_server):
            raise click.UsageError("Name the file for the first backup, or keep it on the server: --to server.")
        to_server = where == on_server
        copies = copies_of(opened, servers, ca_file) if to_server else None
        secret = _new_secret(by or ("" if former else "code"), secret_file)
        state = state_with(former, secret)
        with progress_bar(as_json) as progress:
            made = make_backup(opened.store, path, state, where, _now(), progress, to_server=to_server)
        # The code first: whatever becomes of the way to the server, later backups are under it.
        _print_made(made, secret, to_server=to_server, as_json=as_json)
        if copies is not None:
            with progress_bar(as_json, "bytes") as progress:
                push(copies, opened.store, progress)
            if not as_json:
                console().print("The server has it.", markup=False)


@command.command()
@click.argument("file", type=FILE, required=False)
@secret_file_option
@profile_option
@as_json_option
def show(file: Path | None, secret_file: str | None, profile: str | None, as_json: bool) -> None:
    """Verify the backup in FILE, and show whose it is, from when, and how large.

    Without FILE, show where this profile's last backup is, and how often one is made.
    """
    if file is None:
        with opened_profile(chosen(profile)) as opened:
            state = state_in(opened.store)
        _print_state(state, as_json=as_json)
        return
    info = open_backup(file, secret_of(file, secret_file)).info
    if as_json:
        print_json(_info_json(info))
    else:
        _print_info(info, console())


@command.command("restore")
@click.argument("file", metavar="FILE|ID", required=False)
@click.option("--from", "place", type=click.Choice(["file", "server"]), default="file", show_default=True,
              help="Where the backup is. On the server it has an ID; without one, the newest is meant.")  # fmt: skip
@secret_file_option
@click.option("--older", is_flag=True, help="Restore it although a device of the account knows of a newer one.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@profile_option
@server_options
@timeout_option(TRANSFER_S)
@as_json_option
def put_back(
    file: str | None, place: str, secret_file: str | None, older: bool, yes: bool, profile: str | None,
    servers: tuple[str, ...], ca_file: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Put a backup into this profile, which was registered again or linked.

    First all of it is verified, and its date and size are shown: where no device of the account remembers a newer one,
    an older copy is a backup like any other. What is in the profile stays, nothing is shown twice, and other people see
    that your key has changed if you have registered again.
    """
    if file is None and place == "file":
        raise click.UsageError("Name the file of the backup, or fetch it from the server: --from server.")
    path = chosen(profile)
    with opened_profile(path) as opened, ExitStack() as used:
        where = Path(file or "")
        if place == "server":
            with progress_bar(as_json, "bytes") as progress:
                copies = copies_of(opened, servers, ca_file)
                where = used.enter_context(fetched(copies, file or "", path, progress))
        found = _own_backup(opened, where) or open_backup(where, secret_of(where, secret_file))
        check_account(found.info, opened.store.identity())
        if not older:
            check_newest(found, opened.store)
        if not yes:
            _confirm(found.info)
        with progress_bar(as_json) as progress:
            restored = restore(opened, found, _now(), progress, may_be_older=older)
    if as_json:
        print_json({**_info_json(found.info), "restored": restored.messages, "contacts": restored.contacts})
    else:
        console().print(
            f"Restored {restored.messages:,} messages and {restored.contacts:,} contacts, as they were at "
            f"{clock(found.info.at)}.", markup=False,
        )  # fmt: skip


@command.command("schedule")
@click.argument("every", metavar="1h…365d|off", type=Duration())
@profile_option
@as_json_option
def put_schedule(every: int, profile: str | None, as_json: bool) -> None:
    """Let every running client of this profile (listen, chat, an app) make a backup so often, or no more (off).

    It goes where the last backup is: make a first one with nightmail backup create.
    """
    check_interval(every)
    with opened_profile(chosen(profile)) as opened:
        if (state := state_in(opened.store)) is None:
            raise Misused("there is no backup yet: make a first one with `nightmail backup create FILE`")
        state = replace(state, every_ms=every)
        put_state(opened.store, state)
        opened.store.commit()
    _print_state(state, as_json=as_json)


command.add_command(list_backups)
command.add_command(forget_backup)


# --- the profile ------------------------------------------------------------------------------


def _place(file: Path | None, former: BackupState | None) -> Path | None:
    if file is not None:
        return whole_path(file)
    return Path(former.file) if former and former.file else None


def _own_backup(profile: Profile, file: Path) -> OpenBackup | None:
    """A backup that this profile made needs no code."""
    state = state_in(profile.store)
    return open_own(file, state.head, state.key) if state is not None else None


def _new_secret(by: str, secret_file: str | None) -> BackupSecret | None:
    match by:
        case "code":
            if secret_file:
                raise click.UsageError("--secret-file is for --by passphrase: a recovery code is made for you.")
            return new_recovery_code()
        case "passphrase":
            return new_passphrase(secret_file)
        case _:
            return None


def _now() -> int:
    return time.time_ns() // 1_000_000


def _confirm(info: BackupInfo) -> None:
    """Raises Failure or click.Abort."""
    _print_info(info, Console(stderr=True, highlight=False, soft_wrap=True))
    if not can_ask():
        raise Failure(
            Exit.USAGE, "A confirmation is needed, and standard input is not a terminal.",
            "If this is the backup you mean, use --yes.",
        )  # fmt: skip
    click.confirm("Restore it?", abort=True, err=True)


# --- what is printed --------------------------------------------------------------------------


@contextmanager
def progress_bar(as_json: bool, what: str = "messages") -> Generator[Progress | None]:
    """A bar on a terminal's standard error; nothing for scripts."""
    if as_json or not sys.stderr.isatty():
        yield None
        return
    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total or None)


def _print_made(made: BackupMade, secret: BackupSecret | None, *, to_server: bool, as_json: bool) -> None:
    if as_json:
        shape: dict[str, Any] = {
            "file": str(made.file), **time_fields("at", made.at), "messages": made.messages, "saved": made.saved,
            "bytes": made.size, "segments": made.segments, "whole": made.is_whole, "on_server": to_server,
        }  # fmt: skip
        print_json({**shape, "recovery_code": secret.text} if secret and shown(secret) else shape)
        return
    what = "Saved everything" if made.is_whole else f"Added {made.saved:,} new or changed messages"
    where = "for the server" if to_server else f"in {made.file}"
    console().print(f"{what}: {made.messages:,} messages, {size_words(made.size)}, {where}.", markup=False)
    if secret and (code := shown(secret)):
        console().print(
            f"\nOnly this recovery code opens it. It is not shown again; write it down:\n\n{code}\n", markup=False
        )


def _info_json(info: BackupInfo) -> dict[str, Any]:
    return {
        "file": str(info.file), "handle": info.handle, "account": f"{info.account:x}", **time_fields("at", info.at),
        "messages": info.messages, "bytes": info.size, "segments": info.segments,
        "kept_by": info.kept_by.replace(" ", "_"),
    }  # fmt: skip


def _print_info(info: BackupInfo, page: Console) -> None:
    for name, value in (
        ("backup of", info.handle), ("made at", clock(info.at)), ("messages", f"{info.messages:,}"),
        ("size", size_words(info.size)), ("opened by", f"a {info.kept_by}"),
    ):  # fmt: skip
        page.print(f"{name:10} {plain(value)}", markup=False)


def _print_state(state: BackupState | None, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "file": state.file if state else None, **time_fields("at", state.at if state else 0),
                "messages": state.messages if state else 0, "bytes": state.size if state else 0,
                "every_ms": state.every_ms if state else 0,
                "kept_by": kept_by(state.head).replace(" ", "_") if state else None,
            }
        )  # fmt: skip
        return
    if state is None:
        console().print("There is no backup. Make one: nightmail backup create FILE.", markup=False)
        return
    often = f"every {duration_words(state.every_ms)}, while a client runs" if state.every_ms else "only when asked"
    for name, value in (
        ("file", state.file), ("made at", clock(state.at)), ("messages", f"{state.messages:,}"),
        ("size", size_words(state.size)), ("opened by", f"a {kept_by(state.head)}"), ("made", often),
    ):  # fmt: skip
        console().print(f"{name:10} {plain(value)}", markup=False)
