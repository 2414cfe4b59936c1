"""Scenarios about presence: `watchers`."""

from __future__ import annotations

from collections.abc import Iterator

from .figures import Figures
from .live_scenarios import add_windows
from .load_messages import Order, Seen
from .scenario_setup import Stage


def watchers(at: Stage) -> Iterator[Figures]:
    """A thousand watch one account. Others talk, while it stays as it is and while it comes and goes, in turn."""
    settings = at.settings
    persons, crowd = 2 * settings.pairs, settings.watchers + 1
    with at.server(persons + crowd) as server:
        talk = Order(
            job="talk", port=server.port, server=server.pid, count=persons, window=1, rate=settings.watchers_rate
        )
        watch = Order(job="watch", port=server.port, server=server.pid, first=persons, count=crowd)
        still: list[Seen] = []
        busy: list[Seen] = []
        told: list[Seen] = []
        with at.load(talk) as talking, at.load(watch) as watching:
            if watching.ready.why:
                yield Figures(scenario="watchers", broken=watching.ready.why)
                return
            for _ in range(settings.watchers_turns):
                still.append(talking.measure(settings.seconds, settings.warm_up))
                talking.begin(settings.seconds, settings.warm_up)
                watching.begin(settings.seconds, settings.warm_up)
                busy.append(talking.hear())
                told.append(watching.hear())
        server.check()
    calibration_ns = at.calibration.take()
    news = add_windows(told)
    still_p99_ms = 0.0
    for name, seen in (("watchers_still", add_windows(still)), ("watchers_busy", add_windows(busy))):
        at.calibration.look()
        seen.why = seen.why or news.why
        figures = at.figures(name, seen, connections=persons + crowd, offered=settings.watchers_rate)
        figures.calibration_ns = calibration_ns
        if name == "watchers_still":
            still_p99_ms = figures.p99_ms or 0.0
        else:
            # Both were measured in turns, on one server: so the machine's day does not count.
            figures.more["p99_ratio"] = round((figures.p99_ms or 0.0) / still_p99_ms, 2) if still_p99_ms else 0.0
            figures.more["told_each_per_s"] = round(news.messages / settings.watchers / max(news.seconds, 1e-9), 2)
        yield figures
