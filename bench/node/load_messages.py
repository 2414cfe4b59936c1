"""The orders to a load process and its reports: one line of JSON each, over its pipes."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from .checks import Tally


class Known(Struct, frozen=True):
    """What a member knows of a group."""

    number: int
    epoch: int
    head: bytes
    has_log: bool
    """Its entries are in its log, not in mailboxes."""


class Order(Struct, kw_only=True):
    """The first line: which job, against whom. Persons have numbers; see `people`."""

    job: Literal["talk", "talk_mqtt", "fill", "drain", "hold", "watch", "group"]
    port: int
    server: int
    """Process id, for its CPU clock."""
    first: int = 0
    """The first person of this load."""
    count: int = 0
    """talk: connections, two for each pair. fill: recipients. drain, hold: devices.
    watch: one that is watched, and its watchers. group: members who are online."""
    people: list[int] = []
    """talk: these instead."""
    window: int = 1
    """talk: messages in flight, per writer. fill: per writer and recipient."""
    both_ways: bool = False
    """talk: both of a pair write, not only one."""
    rate: float = 0.0
    """talk: messages per second of all together, whatever becomes of them; 0: as fast as receipts come."""
    grouped: bool = False
    """talk_mqtt: one receipt for all messages of one read, instead of one each."""
    each: int = 0
    """fill, drain: messages per recipient; drain: 0 means that nothing may come."""
    cursor: int = 0
    """drain: how far the devices are when they come back."""
    writers: int = 1
    """fill: persons who write, numbered from `writer`. group: members who write, the first of those online."""
    writer: int = 0
    kill: bool = False
    """fill: kill the server immediately after the last answer."""
    at_once: int = 256
    """Connections being made at a time; 0: all."""
    stay: bool = False
    """drain: remain connected until told otherwise."""
    present: bool = False
    """hold: every device is in the foreground."""
    watching: bool = False
    """hold: every device watches the person before it."""
    group: Known | None = None
    """group: as its members know it."""
    plant: bool = False
    """Ignore one message, to check that the loss is noticed."""


class Window(Struct, kw_only=True):
    """Work, and measure from one moment to another: both on the machine's monotonic clock."""

    since: float
    until: float = 0.0
    """0: until told to stop, by an empty line."""


class Seen(Struct, kw_only=True):
    """What one load process has seen."""

    messages: int = 0
    """In the window: through the whole cycle."""
    shown: int = 0
    """In the window: messages that a device was shown; one that goes to a group is shown to many."""
    seconds: float = 0.0
    server_ns: int = 0
    load_ns: int = 0
    loop_ns: int = 0
    """Of the server's time, that of its event loop's thread."""
    system_ns: int = 0
    """Of the server's time, that in the kernel."""
    waited_ns: int = 0
    """How long the server stood ready to run while something else had the core."""
    latency: dict[int, int] = {}
    """From the (scheduled) sending until the receipt is there."""
    answer: dict[int, int] = {}
    """From the (scheduled) sending until the server has it safe."""
    tally: Tally
    connected: int = 0
    turned_away: int = 0
    """Connections that were told to come back later."""
    cut: dict[int, int] = {}
    """Connections that ended otherwise, by close code; 0: without a word."""
    why: str = ""
    """What went wrong, if something did."""
