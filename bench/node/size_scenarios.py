"""`depth`: does a message cost more with many waiting messages, many known devices, or a long history?

Each row names its size; `flat` is its cost over that of the first row of its kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from random import Random

from msgspec import structs

from .figures import Figures
from .live_scenarios import IN_FLIGHT, add_windows
from .load_messages import Order, Seen
from .offline_scenarios import FILL_WINDOW, WRITERS
from .scenario_setup import Stage

DEVICES_MAX = 400
"""More of them would show what it costs to know many, and that is another row."""
PIECE_S = 60.0
"""Between two looks at how much history there is."""


def depth(at: Stage) -> Iterator[Figures]:
    yield from waiting(at)
    yield from known(at)
    yield from history(at)


def waiting(at: Stage) -> Iterator[Figures]:
    """N messages wait for each device that is away, then it comes back: the whole price, in and out."""
    first: float | None = None
    for each in at.settings.depths:
        devices = max(1, min(DEVICES_MAX, at.settings.waiting // each))
        writers = min(WRITERS, devices)
        with at.server(devices + writers) as server:
            order = Order(
                job="fill", port=server.port, server=server.pid, count=devices, each=each, writers=writers,
                writer=devices, window=FILL_WINDOW,
            )  # fmt: skip
            filled = at.run(order)
            back = structs.replace(order, job="drain", at_once=64)
            drained = at.run(back)
            # Coming back for nothing: what connecting costs is no price of a message.
            empty = at.run(structs.replace(back, each=0, cursor=each))
            server.check()
        drained.server_ns = max(0, drained.server_ns - empty.server_ns)
        both = structs.replace(drained, latency={})
        both.seconds += filled.seconds
        both.server_ns += filled.server_ns
        both.load_ns += filled.load_ns
        both.why = filled.why or drained.why or empty.why
        both.tally.doubled += empty.tally.doubled
        figures = at.figures(
            f"depth-waiting-{each}", both, devices=devices, each=each,
            store_us=_us(filled), drain_us=_us(drained), connect_us=round(empty.server_ns / 1_000 / devices, 1),
        )  # fmt: skip
        first = first or figures.server_us
        figures.more["flat"] = round((figures.server_us or 0) / (first or 1), 2)
        yield figures


def _us(seen: Seen) -> float:
    return round(seen.server_ns / 1_000 / max(seen.messages, 1), 2)


def known(at: Stage) -> Iterator[Figures]:
    """50 pairs among few and among many, each on a server of its own, in turn."""
    settings = at.settings
    with ExitStack() as open_things:
        loads = {
            count: open_things.enter_context(at.load(_pairs_among(at, count, open_things))) for count in settings.known
        }
        windows: dict[int, list[Seen]] = {count: [] for count in settings.known}
        for _ in range(settings.turns):
            for count, load in loads.items():
                windows[count].append(load.measure(settings.seconds, settings.warm_up))
    calibration_ns = at.calibration.take()
    first: float | None = None
    for count, seen in windows.items():
        figures = at.figures(f"depth-known-{count}", add_windows(seen), devices=count, turns=settings.turns)
        figures.calibration_ns = calibration_ns
        first = first or figures.server_us
        figures.more["flat"] = round((figures.server_us or 0) / (first or 1), 2)
        yield figures


def _pairs_among(at: Stage, count: int, open_things: ExitStack) -> Order:
    server = open_things.enter_context(at.server(count))
    persons = Random(count).sample(range(count), min(2 * at.settings.pairs, count // 2 * 2))
    return Order(job="talk", port=server.port, server=server.pid, people=persons, window=IN_FLIGHT)


def history(at: Stage) -> Iterator[Figures]:
    """`busy` at the beginning of a server's life, and after a long one."""
    settings = at.settings
    persons = 2 * settings.pairs
    first: float | None = None
    with at.server(persons) as server:
        order = Order(job="talk", port=server.port, server=server.pid, count=persons, window=IN_FLIGHT)
        with at.load(order) as load:
            past = 0
            for goal in (0, settings.history):
                while past < goal:
                    seen = load.measure(min(PIECE_S, settings.seconds * 2), 0.0)
                    past = seen.tally.delivered
                seen = load.measure(settings.seconds, settings.warm_up)
                server.check()
                figures = at.figures(
                    f"depth-history-{goal}", seen, messages_before=past, server_mib=server.private_kib() // 1024
                )
                past = seen.tally.delivered
                first = first or figures.server_us
                figures.more["flat"] = round((figures.server_us or 0) / (first or 1), 2)
                yield figures
