"""The metrics of a data folder's engines: what a node of a cluster does not have.

Knows:   how the files of log and rows are called.
Touches: their sizes, to read them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from prometheus_client.core import Metric

from .heart import Heart
from .metric_families import counter, gauge


def folder_metrics(heart: Heart) -> Iterator[Metric]:
    lost = heart.loop.state.ledger.lost
    yield gauge("entries_lost", "Copies that nobody answers for: 0, or something is wrong.", lost)
    yield gauge("log_bytes", "Space that the log's files take.", sum(files_of(heart.folder, "log-")))
    yield gauge("rows_bytes", "Space that the rows' files take.", sum(files_of(heart.folder, "rows.db")))
    yield gauge("disk_tight", "1 if space has run out: only acknowledgements are taken.", heart.log.tight)
    if heart.presence is not None:
        yield gauge("accounts_online", "Accounts with a device in the foreground.", heart.presence.online)
        yield counter("presence_saves_failed", "Times that last seen could not be stored.", heart.presence.failed_saves)


def files_of(folder: Path, beginning: str) -> list[int]:
    """The size of each file whose name begins so."""
    sizes: list[int] = []
    for entry in os.scandir(folder):
        if entry.name.startswith(beginning):
            try:
                sizes.append(entry.stat().st_size)
            except FileNotFoundError:
                continue  # trimmed meanwhile
    return sizes
