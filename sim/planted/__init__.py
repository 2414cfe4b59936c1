"""Bugs that somebody could have made, by the part of the program that they are in. `tools` says how one is planted: a
few words of a function are exchanged while the suites run. `sim.runs.teeth` plants each and expects a simulation to
break.
"""

from __future__ import annotations

from . import (
    backups,
    client,
    clock,
    cluster,
    devices,
    engine,
    files,
    forwards,
    gateway,
    group_clients,
    groups,
    handles,
    keeping,
    keys,
    logfiles,
    loss,
    media,
    presence,
    pushes,
    receipts,
    receiving,
    schedule_clients,
    schedules,
    sealing,
    sending,
    shares,
    timers,
    wide,
)
from .tools import Bug, Uprooted

BUGS: tuple[Bug, ...] = (
    *sending.BUGS, *receiving.BUGS, *receipts.BUGS, *devices.BUGS, *handles.BUGS, *engine.BUGS, *keeping.BUGS,
    *forwards.BUGS, *cluster.BUGS, *logfiles.BUGS, *wide.BUGS, *gateway.BUGS, *client.BUGS, *keys.BUGS, *sealing.BUGS,
    *shares.BUGS, *clock.BUGS, *timers.BUGS, *presence.BUGS, *groups.BUGS, *group_clients.BUGS,
    *schedules.BUGS, *pushes.BUGS, *media.BUGS, *files.BUGS, *loss.BUGS, *backups.BUGS, *schedule_clients.BUGS,
)  # fmt: skip

__all__ = ["BUGS", "Bug", "Uprooted"]
