"""`nightmail backup`, as far as the server keeps the backup: brought there, listed, fetched, forgotten.

Touches: the profile, without a client; the server, with the credentials of the profile's device.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from random import SystemRandom
from typing import Any

import click

from nightmail.client.backup.making import Progress
from nightmail.client.backup.schedule import BackupState, put_state, state_in
from nightmail.client.backup.server_copy import Change, ServerCopies, without
from nightmail.client.backup.server_parts import ServerBackup
from nightmail.client.errors import Misused
from nightmail.client.link.http import bearer
from nightmail.client.link.route import ServerRoute
from nightmail.client.media.blob_http import BlobHttp
from nightmail.client.media.transfers import no_report
from nightmail.client.profile.profile import Profile
from nightmail.client.profile.settings import limits_of
from nightmail.client.store.port import Store

from .errors import sentence
from .json_shapes import time_fields
from .output import as_json_option, clock, console, print_json
from .profiles import ca_file_of, chosen, profile_option, server_options, servers_of, tls_of
from .sizes import size_words
from .unlocking import secret_for
from .waiting import bounded_limits, run_within, timeout_option

SHORT_ID = 8


@contextmanager
def opened_profile(path: Path) -> Generator[Profile]:
    profile = Profile(path, secret_for(path))
    try:
        yield profile
    finally:
        profile.close()


def copies_of(profile: Profile, servers: tuple[str, ...], ca_file: str | None) -> ServerCopies:
    """Raises Misused, click.UsageError."""
    identity, limits = profile.store.identity(), bounded_limits(limits_of(profile.path))
    if identity is None or not identity.device:
        raise Misused("the profile is not registered yet")
    try:
        route = ServerRoute(servers_of(profile.path, servers), limits, SystemRandom())
    except Misused as error:
        raise click.UsageError(sentence(error)) from None
    addresses = [address.http for address in route.addresses]
    return ServerCopies(
        BlobHttp(addresses, bearer(identity), tls_of(ca_file_of(profile.path, ca_file)), limits), limits
    )


def push(copies: ServerCopies, store: Store, progress: Progress | None) -> None:
    """Raises BackupError, Failure."""
    state = state_in(store)
    assert state is not None
    run_within(copies.push(state, _saving(store), progress or no_report))


class _saving:  # noqa: N801  # a function with a store
    def __init__(self, store: Store) -> None:
        self._store = store

    async def __call__(self, change: Change) -> BackupState:
        state = state_in(self._store)
        assert state is not None
        state = change(state)
        put_state(self._store, state)
        self._store.commit()
        return state


@contextmanager
def fetched(copies: ServerCopies, name: str, folder: Path, progress: Progress | None) -> Generator[Path]:
    """A backup of the server in a file, for as long as it is used. Raises BackupError, Misused, Failure."""
    file = folder / "fetched.backup"
    file.unlink(missing_ok=True)
    try:
        backup = run_within(copies.named(name))
        run_within(copies.fetch(backup, file, progress or no_report))
        yield file
    finally:
        file.unlink(missing_ok=True)


@click.command("list")
@profile_option
@server_options
@timeout_option()
@as_json_option
def list_backups(profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool) -> None:
    """List the account's backups on the server, the newest last.

    Dates are when the server got them. From when a backup is, `nightmail backup restore` shows before it restores.
    """
    with opened_profile(chosen(profile)) as opened:
        state = state_in(opened.store)
        own = state.server.id.hex() if state and state.server else ""
        found = run_within(copies_of(opened, servers, ca_file).all())
    for backup in found:
        if as_json:
            print_json(_json(backup, is_own=backup.id == own))
            continue
        size = size_words(backup.size) if backup.size else "its beginning is missing"
        whose = "  from this device" if backup.id == own else ""
        console().print(f"{backup.id[:SHORT_ID]}  {clock(backup.at)}  {size}{whose}", markup=False)
    if not found and not as_json:
        console().print("The server has no backups of this account.", markup=False)


@click.command("forget")
@click.argument("backup_id", metavar="ID")
@profile_option
@server_options
@timeout_option()
@as_json_option
def forget_backup(
    backup_id: str, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool
) -> None:
    """Remove a backup from the server for good. ID is as `nightmail backup list` shows it."""
    with opened_profile(chosen(profile)) as opened:
        copies = copies_of(opened, servers, ca_file)
        backup = run_within(_forget(copies, backup_id))
        if (state := state_in(opened.store)) is not None:
            put_state(opened.store, without(backup)(state))
            opened.store.commit()
    if as_json:
        print_json({"id": backup.id, "forgotten": True})
    else:
        console().print(f"The server has forgotten the backup {backup.id[:SHORT_ID]}.", markup=False)


async def _forget(copies: ServerCopies, name: str) -> ServerBackup:
    backup = await copies.named(name)
    await copies.forget(backup)
    return backup


def _json(backup: ServerBackup, *, is_own: bool) -> dict[str, Any]:
    return {
        "id": backup.id, **time_fields("at", backup.at), "bytes": backup.size, "parts": len(backup.parts),
        "own": is_own,
    }  # fmt: skip
