"""Scenarios with live traffic: `phone`, `busy`, `crowd`; and `peers`, the same work in another server."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import structs

from nightmail.testing.running import free_port

from .figures import BUSY_LOAD, Figures
from .load_messages import Order, Seen
from .scenario_setup import Stage
from .server import Server, ServerFailed
from .workers import Load, put_together

IN_FLIGHT = 8
LOADS_MAX = 2
"""If one load process is too busy, the work is measured again with another beside it."""


def phone(at: Stage) -> Iterator[Figures]:
    """Everybody has one message on the way: 1,000 connections, each writes to its partner and hears from it."""
    persons = at.settings.phones
    yield _closed(at, "phone", persons, persons, window=1, both_ways=True)


def phone_one_way(at: Stage) -> Iterator[Figures]:
    """The same connections, but only one of each pair writes: nothing travels together with anything else."""
    persons = at.settings.phones
    yield _closed(at, "phone_one_way", persons, persons // 2, window=1)


def phone_open(at: Stage) -> Iterator[Figures]:
    """Messages fall due at 7,500 a second, whatever became of those before them."""
    settings = at.settings
    with at.server(settings.phones) as server:
        order = _talk(server, settings.phones, window=1, both_ways=True, rate=settings.phone_rate)
        with at.load(order, settings.loads) as load:
            seen = load.measure(settings.seconds, settings.warm_up)
            server.check()
            yield at.figures("phone_open", seen, settings.loads, connections=settings.phones, offered=order.rate)


def busy(at: Stage) -> Iterator[Figures]:
    """50 pairs, 8 messages in flight each."""
    pairs = at.settings.pairs
    yield _closed(at, "busy", 2 * pairs, pairs * IN_FLIGHT, window=IN_FLIGHT)


def crowd(at: Stage) -> Iterator[Figures]:
    """500 pairs, 8 messages in flight each."""
    pairs = at.settings.crowd
    yield _closed(at, "crowd", 2 * pairs, pairs * IN_FLIGHT, window=IN_FLIGHT)


def _closed(at: Stage, name: str, persons: int, in_flight: int, *, window: int, both_ways: bool = False) -> Figures:
    settings = at.settings
    with at.server(persons) as server:
        order = _talk(server, persons, window=window, both_ways=both_ways, plant=settings.plant)
        loads = settings.loads
        while True:
            with at.load(order, loads) as load:
                seen = load.measure(settings.seconds, settings.warm_up)
            server.check()
            if loads == LOADS_MAX or seen.load_ns / 1e9 / seen.seconds / loads <= BUSY_LOAD:
                return at.figures(name, seen, loads, connections=persons, in_flight=in_flight)
            loads += 1


def _talk(
    server: Server, persons: int, *, window: int, both_ways: bool = False, rate: float = 0.0, plant: bool = False
) -> Order:
    return Order(
        job="talk", port=server.port, server=server.pid, count=persons, window=window, both_ways=both_ways,
        rate=rate, plant=plant,
    )  # fmt: skip


# --- somebody else's ----------------------------------------------------------------------------

MOSQUITTO = """
listener {port} 127.0.0.1
allow_anonymous true
persistence true
persistence_location {folder}/
set_tcp_nodelay true
max_inflight_messages 0
max_queued_messages 0
log_dest none
user root
"""
HOW = "mosquitto is not installed; on Debian or Ubuntu: apt-get install mosquitto"


@contextmanager
def mosquitto(folder: Path) -> Generator[tuple[int, int]]:
    """Its port and its process id."""
    binary = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin:/opt/homebrew/sbin")
    assert binary is not None
    folder.mkdir()
    port = free_port()
    settings = folder / "mosquitto.conf"
    settings.write_text(MOSQUITTO.format(port=port, folder=folder))
    process = subprocess.Popen((binary, "-c", settings), stderr=subprocess.DEVNULL)
    try:
        _await_port(port, process)
        yield port, process.pid
    finally:
        process.kill()
        process.wait(10)


def _await_port(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(500):
        if process.poll() is not None:
            break
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise ServerFailed("mosquitto did not start")


def has_mosquitto() -> bool:
    return (
        shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin:/opt/homebrew/sbin")
        is not None
    )


def peers(at: Stage) -> Iterator[Figures]:
    """`busy` here and in Mosquitto, in turn: A B A B. It does not sync to the disk; we do, before every answer."""
    if not has_mosquitto():
        yield Figures(scenario="peers", skipped=HOW)
        return
    persons = 2 * at.settings.pairs
    with at.server(persons) as server, mosquitto(at.new_folder()) as (port, pid):
        ours = _talk(server, persons, window=IN_FLIGHT)
        theirs = structs.replace(ours, job="talk_mqtt", port=port, server=pid)
        # Persons of their own for each load: a session is one connection.
        grouped = structs.replace(theirs, grouped=True, first=persons)
        with at.load(ours) as a, at.load(theirs) as b, at.load(grouped) as c:
            sides = {"peers": a, "mosquitto": b, "mosquitto_grouped": c}
            found = _in_turn(at, sides)
        server.check()
    rates = {name: seen.messages / max(seen.seconds, 1e-9) for name, seen in found.items()}
    calibration = at.calibration.take()
    for name, seen in found.items():
        at.calibration.look()
        figures = at.figures(name, seen, connections=persons, in_flight=persons // 2 * IN_FLIGHT)
        figures.calibration_ns = calibration
        if name == "peers":
            figures.more["ratio_to_peer"] = round(rates[name] / max(rates["mosquitto"], 1), 2)
            figures.more["ratio_to_grouped"] = round(rates[name] / max(rates["mosquitto_grouped"], 1), 2)
            figures.more["turns"] = at.settings.turns
        else:
            # Losses of the other server do not fail the run, but are reported.
            figures.more["receipts"] = "one for each message" if name == "mosquitto" else "one for each read"
        yield figures


def _in_turn(at: Stage, sides: dict[str, Load]) -> dict[str, Seen]:
    """Each side works alone; the others are connected and silent."""
    windows: dict[str, list[Seen]] = {name: [] for name in sides}
    for _ in range(at.settings.turns):
        for name, load in sides.items():
            windows[name].append(load.measure(at.settings.seconds, at.settings.warm_up))
    return {name: add_windows(seen) for name, seen in windows.items()}


def add_windows(windows: list[Seen]) -> Seen:
    """One after the other, of the same load: times add up as well, and the last tally holds all before it."""
    whole = put_together(windows)
    whole.seconds = sum(seen.seconds for seen in windows)
    for name in ("server_ns", "loop_ns", "system_ns", "waited_ns"):
        setattr(whole, name, sum(getattr(seen, name) for seen in windows))
    whole.tally = windows[-1].tally
    whole.connected = windows[-1].connected
    return whole
