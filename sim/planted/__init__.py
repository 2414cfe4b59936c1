"""Bugs that somebody could have made, each to be caught by the suites: see `sim.runs.teeth`."""

from __future__ import annotations

from . import (
    client,
    cluster,
    devices,
    engine,
    forwards,
    gateway,
    keeping,
    keys,
    logfiles,
    receipts,
    receiving,
    sealing,
    sending,
    wide,
)
from .tools import Bug, Uprooted

BUGS: tuple[Bug, ...] = (
    *sending.BUGS, *receiving.BUGS, *receipts.BUGS, *devices.BUGS, *engine.BUGS, *keeping.BUGS, *forwards.BUGS,
    *cluster.BUGS, *logfiles.BUGS, *wide.BUGS, *gateway.BUGS, *client.BUGS, *keys.BUGS, *sealing.BUGS,
)  # fmt: skip

__all__ = ["BUGS", "Bug", "Uprooted"]
