"""`groups`: what a message to a group costs, and what its delivery to each online device does.

A row per size; `groups_50_single` has one message in flight, so nothing travels together with anything else.
`delivery_us` is the server's whole time over the deliveries to online devices, acknowledgements included.
"""

from __future__ import annotations

from collections.abc import Iterator

from .figures import Figures
from .live_scenarios import IN_FLIGHT
from .load_messages import Order, Seen
from .scenario_setup import Stage

AUTHORS = 8


def groups(at: Stage) -> Iterator[Figures]:
    first: float | None = None
    for members, online in at.settings.groups:
        yield (figures := _talk(at, f"groups_{members}", members, online, AUTHORS, IN_FLIGHT))
        delivery_us = figures.more["delivery_us"]
        assert isinstance(delivery_us, float)
        first = first or delivery_us
        figures.more["flat"] = round(delivery_us / max(first, 1e-9), 2)
        yield _talk(at, f"groups_{members}_single", members, online, 1, 1)


def _talk(at: Stage, name: str, members: int, online: int, authors: int, window: int) -> Figures:
    settings = at.settings
    with at.server_with_group(members) as (server, known):
        order = Order(
            job="group", port=server.port, server=server.pid, count=online, writers=min(authors, online - 1),
            window=window, group=known, plant=settings.plant,
        )  # fmt: skip
        with at.load(order) as load:
            seen = load.measure(settings.seconds, settings.warm_up)
        server.check()
    return at.figures(
        name, seen, members=members, online=online, in_flight=order.writers * window, delivery_us=_delivery_us(seen)
    )


def _delivery_us(seen: Seen) -> float:
    return round(seen.server_ns / 1_000 / max(seen.shown, 1), 2)
