"""Scenarios with offline or idle devices: `offline`, `idle`, `storm`."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import structs

from .figures import Figures
from .load_messages import Order, Seen
from .machine import connections_max
from .scenario_setup import Stage
from .server import Server

WRITERS = 50
FILL_WINDOW = 200
STORM_AT_ONCE = 500
IDLE_LOADS = 2
"""Each has its own limit of open files, and half of the heartbeats."""


def offline(at: Stage) -> Iterator[Figures]:
    """Messages for offline devices; `kill -9` at the last answer; restart; each message is delivered once, in order."""
    settings = at.settings
    away, each = settings.away, settings.away_each
    writers = min(WRITERS, away)
    with at.server(away + writers) as server:
        order = Order(
            job="fill", port=server.port, server=server.pid, count=away, each=each, writers=writers, writer=away,
            window=FILL_WINDOW, kill=True,
        )  # fmt: skip
        filled = at.run(order)
        server.kill()
        restart_s = server.start()
        back = structs.replace(order, job="drain", server=server.pid, kill=False, plant=settings.plant)
        drained = at.run(back)
        again = at.run(structs.replace(back, each=0, cursor=each, plant=False))
        server.check()
    yield at.figures(
        "offline", _together(filled, drained, again), devices=away, each=each, restart_s=round(restart_s, 2),
        stored_per_s=_per_s(filled), drained_per_s=_per_s(drained), second_drain=again.messages,
        store_us=_us(filled), drain_us=_us(drained), refused=filled.tally.refused,
    )  # fmt: skip


def _together(*phases: Seen) -> Seen:
    """One after the other: what was shown counts as a message, and whatever any phase found wrong."""
    filled, drained, *others = phases
    whole = structs.replace(drained, latency={}, answer=filled.answer)
    whole.seconds += filled.seconds
    whole.server_ns += filled.server_ns
    whole.load_ns += filled.load_ns
    for phase in (filled, *others):
        for name in ("lost", "doubled", "reordered", "changed"):
            setattr(whole.tally, name, getattr(whole.tally, name) + getattr(phase.tally, name))
        whole.why = whole.why or phase.why
    return whole


def _per_s(seen: Seen) -> int:
    return round(seen.messages / max(seen.seconds, 1e-9))


def _us(seen: Seen) -> float:
    return round(seen.server_ns / 1_000 / max(seen.messages, 1), 2)


def idle(at: Stage) -> Iterator[Figures]:
    """Connected devices that send only heartbeats: what an idle connection costs."""
    yield _held(at, "idle")


def idle_present(at: Stage) -> Iterator[Figures]:
    """The same, with every device in the foreground; then also with one conversation open on each."""
    yield _held(at, "idle_present", present=True)
    yield _held(at, "idle_watching", present=True, watching=True)


def _held(at: Stage, scenario: str, *, present: bool = False, watching: bool = False) -> Figures:
    settings, count = at.settings, at.connections()
    with at.server(count) as server:
        # A few connect and leave first: the first connection costs more than each further one.
        with at.load(_hold(server, min(10, count))):
            pass
        before = server.private_kib()
        with at.load(_hold(server, count, present=present, watching=watching), IDLE_LOADS) as load:
            if load.ready.why:
                return Figures(scenario=scenario, broken=load.ready.why)
            connected_kib = server.private_kib()
            seen = load.measure(settings.idle_s)
            after = server.private_kib()
        server.check()
    seen.messages = 0
    figures = at.figures(
        scenario, seen, IDLE_LOADS, connections=seen.connected, wanted=settings.connections,
        open_files_allow=connections_max(), kib_per_connection=round((after - before) / count, 2),
        kib_when_connected=round((connected_kib - before) / count, 2), heartbeat_s=30, server_mib=after // 1024,
    )  # fmt: skip
    figures.rate = figures.server_us = figures.load_us = None
    if seen.connected < count:
        figures.broken = figures.broken or f"{count - seen.connected} connections were lost"
    return figures


def _hold(server: Server, count: int, *, present: bool = False, watching: bool = False) -> Order:
    return Order(
        job="hold", port=server.port, server=server.pid, count=count, present=present, watching=watching
    )  # fmt: skip


def storm(at: Stage) -> Iterator[Figures]:
    """All devices reconnect at once, with messages waiting; live traffic must not suffer."""
    settings = at.settings
    live = 2 * settings.pairs
    writers = min(WRITERS, settings.pairs)
    count = at.connections(live + writers)
    with at.server(count + live + writers, {}) as server:
        crowd = Order(
            job="fill", port=server.port, server=server.pid, count=count, each=settings.storm_each, writers=writers,
            writer=count, window=FILL_WINDOW,
        )  # fmt: skip
        filled = at.run(crowd)
        talk = Order(
            job="talk", port=server.port, server=server.pid, first=count + writers, count=live, window=1,
            rate=settings.storm_rate,
        )  # fmt: skip
        # As fast as one process can connect without delaying the connections that it already has.
        come = structs.replace(crowd, job="drain", at_once=STORM_AT_ONCE, stay=True)
        with at.load(talk) as talking, at.load(come) as coming:
            calm = talking.measure(settings.seconds, settings.warm_up)
            calm_ms = at.figures("", calm)
            talking.begin(warm_up=0.0)
            coming.tell()
            drained = coming.hear()
            talking.tell()
            seen = talking.hear()
        server.check()
    seen.why = seen.why or drained.why or filled.why
    for name in ("lost", "doubled", "reordered", "changed"):
        setattr(seen.tally, name, getattr(seen.tally, name) + getattr(drained.tally, name))
    figures = at.figures(
        "storm", seen, connections=count, each=settings.storm_each, offered=settings.storm_rate,
        drained_s=round(drained.seconds, 2), drained_per_s=_per_s(drained), turned_away=drained.turned_away,
        cut={str(code): count for code, count in drained.cut.items()},
        storm_load_share=round(drained.load_ns / 1e9 / max(drained.seconds, 1e-9), 3),
        calm_p50_ms=calm_ms.p50_ms, calm_p99_ms=calm_ms.p99_ms,
    )  # fmt: skip
    # The server's time covers both, so it is not the cost of the live messages alone.
    figures.server_us = None
    yield figures
