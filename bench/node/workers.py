"""Starts load processes, sends them orders, reads their reports, and merges them.

Knows:   that windows are told in the machine's monotonic time, so that several processes measure the same one.
Touches: its own children and their pipes.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import time
from types import TracebackType
from typing import Self

import msgspec

from bench.measured_node import Broken

from .checks import Tally, add_up
from .load_messages import Order, Seen, Window
from .machine import Calibration

LINE_S = 1_800.0
WARM_UP_S = 1.0


class Worker:
    """One load process."""

    def __init__(self, order: Order, calibration: Calibration) -> None:
        self._calibration = calibration
        self._process = subprocess.Popen(
            (sys.executable, "-m", "bench.node.load"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self._rest = b""
        self.tell(order)

    def tell(self, what: Order | Window | None) -> None:
        assert self._process.stdin is not None
        line = b"" if what is None else msgspec.json.encode(what)
        self._process.stdin.write(line + b"\n")

    def hear(self) -> Seen:
        """Waits; meanwhile it looks how fast the machine is."""
        assert self._process.stdout is not None
        handle = self._process.stdout.fileno()
        deadline = time.monotonic() + LINE_S
        with selectors.DefaultSelector() as selector:
            selector.register(handle, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                self._calibration.look()
                if selector.select(0.1):
                    if not (data := os.read(handle, 1 << 16)):
                        raise Broken(f"the load process ended with {self._process.wait(10)}")
                    self._rest += data
                elif time.monotonic() > deadline:
                    raise Broken("the load process says nothing")
        line, _, self._rest = self._rest.partition(b"\n")
        return msgspec.json.decode(line, type=Seen)

    def end(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.kill()
        self._process.wait(10)
        self._process.stdin.close()
        self._process.stdout.close()


class Load:
    """One or more load processes that do the same thing at the same time. Ready when it is built."""

    def __init__(self, orders: list[Order], calibration: Calibration) -> None:
        self.workers: list[Worker] = []
        try:
            for order in orders:
                self.workers.append(Worker(order, calibration))
            self.ready = put_together([worker.hear() for worker in self.workers])
        except BaseException:
            self.end()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end()

    def begin(self, seconds: float = 0.0, warm_up: float = WARM_UP_S) -> None:
        """A window; without an end if it has no length."""
        since = time.monotonic() + warm_up
        for worker in self.workers:
            worker.tell(Window(since=since, until=since + seconds if seconds else 0.0))

    def tell(self) -> None:
        """Go on: begin, or stop, whatever is next."""
        for worker in self.workers:
            worker.tell(None)

    def hear(self) -> Seen:
        return put_together([worker.hear() for worker in self.workers])

    def measure(self, seconds: float, warm_up: float = WARM_UP_S) -> Seen:
        self.begin(seconds, warm_up)
        return self.hear()

    def end(self) -> None:
        for worker in self.workers:
            worker.end()
        self.workers.clear()


def put_together(parts: list[Seen]) -> Seen:
    """Add the counts. All processes read the same server clock, so it is taken once."""
    tally = Tally()
    for name in Tally.__struct_fields__:
        setattr(tally, name, sum(getattr(part.tally, name) for part in parts))
    return Seen(
        messages=sum(part.messages for part in parts),
        shown=sum(part.shown for part in parts),
        seconds=max(part.seconds for part in parts),
        server_ns=max(part.server_ns for part in parts),
        load_ns=sum(part.load_ns for part in parts),
        loop_ns=max(part.loop_ns for part in parts),
        system_ns=max(part.system_ns for part in parts),
        waited_ns=max(part.waited_ns for part in parts),
        latency=add_up(part.latency for part in parts),
        answer=add_up(part.answer for part in parts),
        tally=tally,
        connected=sum(part.connected for part in parts),
        turned_away=sum(part.turned_away for part in parts),
        cut=add_up(part.cut for part in parts),
        why=next((part.why for part in parts if part.why), ""),
    )


def split(order: Order, processes: int) -> list[Order]:
    """The same work in several processes: an equal share of the persons, and of the rate, each."""
    share = order.count // processes // 2 * 2
    counts = [share] * (processes - 1) + [order.count - share * (processes - 1)]
    return [
        msgspec.structs.replace(
            order, first=order.first + share * n, count=count, rate=order.rate * count / max(order.count, 1)
        )
        for n, count in enumerate(counts)
    ]  # fmt: skip
