"""Brings the data folder of a node alone into a new cluster, whose clients then go on where they were.

    rows, entries ─► Cassandra, each to its shard ─► pointers ─► logs that end there

Knows:   what a folder and a cluster must be like for that.
Touches: the folder, to read it; Kafka and Cassandra. Neither a server nor a node may run.
Never:   leaves a cluster that would serve a part of the folder: a pointer is moved when everything is written, and
         an owner refuses a pointer that its log does not reach.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from nightmail.core.splitting import Split
from nightmail.core.state import NEWEST_FOLD, SHARD, decode_shard
from nightmail.engine.cluster.cassandra.init import decided
from nightmail.engine.cluster.cassandra.nodes import read_nodes
from nightmail.engine.cluster.cassandra.session import CassandraSession
from nightmail.engine.cluster.cassandra.store import CassandraStore
from nightmail.engine.cluster.kafka.batches import SPAN
from nightmail.engine.cluster.kafka.filling import fill, messages_for
from nightmail.engine.cluster.kafka.survey import ends
from nightmail.engine.cluster.store import Done
from nightmail.engine.cluster.wide import WideRows, do_all
from nightmail.engine.folder_copy import Progress, reading_at_rest
from nightmail.engine.loop import TICK
from nightmail.engine.ports import Checkpoint, EngineError, Failed, saving
from nightmail.engine.sqlite.snapshot import Snapshot
from nightmail.model.ids import account_of, shard_of
from nightmail.model.records import encode_record
from nightmail.model.rows import Shard
from nightmail.server.calls import SECRET_FILE as CALLS_SECRET
from nightmail.server.config import Config
from nightmail.server.node import SECRET_FILE as ACCOUNTS_SECRET
from nightmail.server.pushes import SECRET_FILE as PUSH_SECRET

T = TypeVar("T")

REPORTED_EVERY = 1_000


class FolderFigures(Struct, frozen=True):
    """What is brought in."""

    rows: int
    entries: int
    bytes: int
    """Of rows and entries."""
    letters_left: int
    """Settled dead letters, which stay in the folder."""
    pointer: int
    """Where the log of every shard goes on."""


async def import_folder(config: Config, folder: Path, progress: Progress, *, dry_run: bool = False) -> FolderFigures:
    """Raises EngineError; one sentence says why nothing was brought in, or what to do."""
    _check_secrets(config, folder)
    with reading_at_rest(folder, progress) as rows:
        shard = _check_shard(rows)
        figures = _figures(rows, progress)
        session = await CassandraSession.connect(config.cassandra)
        try:
            shards, buckets = await _check_cluster(session, config)
            store = await CassandraStore.open(session, config.cassandra, buckets, config.loop.notes_ms)
            await _check_empty(store, config, shards)
            if not dry_run:
                await _bring(rows, store, shards, figures, shard.now, progress)
                count = messages_for(figures.pointer)
                await asyncio.to_thread(fill, config.kafka, shards, count, shard.now, encode_record(TICK))
        finally:
            await session.close()
    return figures


# --- what must be so --------------------------------------------------------------------------


def _check_secrets(config: Config, folder: Path) -> None:
    """What people and receivers know was made with these."""
    for name, given, file in (
        ("accounts.secret", config.accounts.secret, ACCOUNTS_SECRET),
        ("schedule.secret", config.schedule.secret, CALLS_SECRET),
        ("push.secret", config.push.secret, PUSH_SECRET),
    ):
        if (folder / file).exists() and (folder / file).read_text("ascii").strip() != given:
            raise EngineError(f"{name} must be what {folder / file} holds, or PINs and signatures would not be known")


def _check_shard(rows: Snapshot) -> Shard:
    found = rows.row(SHARD)
    shard = decode_shard(found) if found else Shard()
    if shard.fold != NEWEST_FOLD:
        raise EngineError("the folder was last served by another version: start the server on it once, and stop it")
    if shard.dead:
        raise EngineError(f"{shard.dead} dead letters are not settled: replay or discard them first")
    return shard


async def _check_cluster(session: CassandraSession, config: Config) -> tuple[int, int]:
    values = await decided(session)
    if not values.get("shards"):
        raise EngineError("this cluster is not made yet: run `nightmail cluster init`")
    if nodes := await read_nodes(session):
        raise EngineError(f"{nodes[0].name} is running: stop every node of the cluster first")
    return values["shards"], values["buckets"]


async def _check_empty(store: CassandraStore, config: Config, shards: int) -> None:
    logs = await asyncio.to_thread(ends, config.kafka, shards)
    for shard in range(shards):
        if logs[shard] or await _asked(partial(store.read_pointer, shard)):
            raise EngineError("this cluster has data already: make another one, with another topic and keyspace")


# --- bringing it in ---------------------------------------------------------------------------


def _figures(rows: Snapshot, progress: Progress) -> FolderFigures:
    split, size, count, entries = Split(1), 0, 0, 0
    for key, version, value in rows.every_row():
        split.place(key, version, value)
        count, size = count + 1, size + len(value)
        if count % REPORTED_EVERY == 0:
            progress("counting", count, 0)
    for _, _, body in rows.every_entry():
        entries, size = entries + 1, size + len(body)
    return FolderFigures(count, entries, size, split.letters, messages_for(rows.found.pointer) * SPAN)


async def _bring(
    rows: Snapshot, store: CassandraStore, shards: int, figures: FolderFigures, at: int, progress: Progress
) -> None:
    split, total = Split(shards), figures.rows + figures.entries

    def writes() -> Iterator[Callable[[Done], None]]:
        done = 0
        for key, version, value in rows.every_row():
            if (shard := split.place(key, version, value)) is not None:
                yield partial(store.write_row, shard, key, version, value)
            if (done := done + 1) % REPORTED_EVERY == 0:
                progress("bringing in", done, total)
        for queue, seq, body in rows.every_entry():
            yield partial(store.write_entry, shard_of(account_of(queue >> 1), shards), queue, seq, body)
            if (done := done + 1) % REPORTED_EVERY == 0:
                progress("bringing in", done, total)

    _raise(await _answer(partial(do_all, writes(), store.at_once)))
    for shard in range(shards):
        own = await _asked(partial(WideRows.open, store, shard))
        rest = [saving(key, version, value) for key, version, value in split.rest(shard)]
        _raise(await _answer(partial(own.save, Checkpoint(figures.pointer, at, rest))))
        progress("shards", shard + 1, shards)


async def _asked(ask: Callable[[Callable[[T | Failed], None]], None]) -> T:
    found = await _answer(ask)
    if isinstance(found, Failed):
        raise EngineError(found.why)
    return found


async def _answer(ask: Callable[[Callable[[T], None]], None]) -> T:
    answered: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    ask(answered.set_result)
    return await answered


def _raise(outcome: object) -> None:
    if outcome is not None:
        raise EngineError(f"Cassandra did not take it ({outcome}): run the command again")
