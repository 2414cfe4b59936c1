"""Bugs that somebody could have made, by the part of the program that they are in. `tools` says how one is planted: a
few words of a function are exchanged while the suites run. `sim.runs.teeth` plants each and expects a simulation to
break.
"""

from __future__ import annotations

from . import (
    client,
    clock,
    cluster,
    devices,
    engine,
    forwards,
    gateway,
    handles,
    keeping,
    keys,
    logfiles,
    receipts,
    receiving,
    sealing,
    sending,
    shares,
    wide,
)
from .tools import Bug, Uprooted

BUGS: tuple[Bug, ...] = (
    *sending.BUGS, *receiving.BUGS, *receipts.BUGS, *devices.BUGS, *handles.BUGS, *engine.BUGS, *keeping.BUGS,
    *forwards.BUGS, *cluster.BUGS, *logfiles.BUGS, *wide.BUGS, *gateway.BUGS, *client.BUGS, *keys.BUGS, *sealing.BUGS,
    *shares.BUGS, *clock.BUGS,
)  # fmt: skip

__all__ = ["BUGS", "Bug", "Uprooted"]
